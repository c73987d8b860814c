"""Steps at which a program's own class is at work, not only a function."""

from __future__ import annotations

from pystreams.dsl.operators.transform_values import TableTransformValues
from pystreams.topology.nodes import Process, ProcessorNode


def runs_processor(node: ProcessorNode) -> bool:
    """Whether the step runs a processor or a transformer of the program's, or one that a processor wrapper has put
    around it: it may write to each of its stores, read global ones, schedule, and keep attributes."""
    return node.supplier is not None or isinstance(node.operation, Process | TableTransformValues)

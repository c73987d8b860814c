"""Tests of topologies and processors without a broker.

Begin with ``driver``: ``TopologyTestDriver`` runs a topology in the thread of the test, with the engine of live
applications. ``topics`` are its inputs and outputs, ``producer`` keeps its output records, ``java_order`` processes
records of equal timestamps in Java's order. ``mock_context`` tests one processor alone. ``play`` shows in a notebook
the results of a topology for a few records.
"""

from __future__ import annotations

from pystreams.testing.driver import TopologyTestDriver
from pystreams.testing.mock_context import CapturedForward, CapturedPunctuator, MockProcessorContext
from pystreams.testing.play import play
from pystreams.testing.producer import ProducedRecord
from pystreams.testing.topics import InputTopic, OutputTopic

__all__ = [
    "CapturedForward",
    "CapturedPunctuator",
    "InputTopic",
    "MockProcessorContext",
    "OutputTopic",
    "ProducedRecord",
    "TopologyTestDriver",
    "play",
]

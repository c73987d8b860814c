"""Steps of column expressions between a topic and an aggregation that gets its input in columns (``column_input``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow
from pystreams.dsl.operators.stateless import Filter, MapValues
from pystreams.topology.nodes import Node, ProcessorNode, SourceNode

ColumnStep: TypeAlias = Filter | MapValues


class Passed(NamedTuple):
    """The records that have passed all steps: their rows, and their values then (None: as they are in the rows)."""

    rows: Arrow
    values: list[Any] | None


def column_steps(source: SourceNode, nodes: Sequence[Node]) -> tuple[list[ColumnStep], str] | None:
    """The steps of expressions behind a source, and the name of the step behind them; None if some step has not exactly
    one behind it."""
    steps: list[ColumnStep] = []
    at: Node = source
    while True:
        behind = [node for node in nodes if not isinstance(node, SourceNode) and at.name in node.parents]
        if len(behind) != 1:
            return None
        (at,) = behind
        operation = _expression(at)
        if operation is None:
            return steps, at.name
        steps.append(operation)


def passed(steps: Sequence[ColumnStep], rows: Arrow, values: list[Any]) -> Passed | None:
    """The records that pass the steps; None if one gets a null value, which steps behind count as dropped. Raises what
    the expressions raise."""
    keeps = [True] * len(values)
    for step in steps:
        if isinstance(step, MapValues):
            values = [*map(step.mapper.call, values)]
            continue
        wanted = [bool(one) is not step.negate for one in map(step.predicate.call, values)]
        values = [*compress(values, wanted)]
        left = iter(wanted)
        keeps = [keep and next(left) for keep in keeps]
    if any(value is None for value in values):
        return None
    return Passed(rows if all(keeps) else rows.filter(pa.array(keeps, pa.bool_())), values)


def _expression(node: Node) -> ColumnStep | None:
    if not isinstance(node, ProcessorNode) or node.supplier is not None:
        return None
    operation = node.operation
    if isinstance(operation, Filter) and operation.predicate.is_expression:
        return operation
    return operation if isinstance(operation, MapValues) and operation.mapper.is_expression else None

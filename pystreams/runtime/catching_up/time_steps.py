"""Finds the steps that depend on stream time: they drop, close or emit something when it advances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pystreams.dsl.operators.process import Process
from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.operators.sliding_aggregate import SlidingAggregate
from pystreams.dsl.operators.stream_join import SelfJoin, StreamJoin
from pystreams.dsl.operators.stream_table_join import StreamTableJoin
from pystreams.dsl.operators.suppress import Suppress
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.state.spec import EXPIRING_KINDS, StoreSpec
from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import Node, Operation, ProcessorNode


class TimeStep(NamedTuple):
    """A step that depends on stream time. A record that is behind stream time by at most ``grace_ms`` has the same
    results as if it had come in time; None: the step drops nothing, or only the user's code knows what it drops."""

    node: ProcessorNode
    grace_ms: int | None


def time_steps(sub: SubTopology) -> tuple[TimeStep, ...]:
    """The steps of a sub-topology that depend on stream time, in the order of its nodes."""
    stores = {spec.name: spec for spec in sub.stores}
    return tuple(step for node in sub.nodes if (step := _time_step(node, stores)) is not None)


def _time_step(node: Node, stores: Mapping[str, StoreSpec]) -> TimeStep | None:
    if not isinstance(node, ProcessorNode):
        return None
    graces = [_grace_of(node.operation), *(_retention_of(stores[name]) for name in node.stores)]
    known = [grace for grace in graces if grace is not None]
    # A processor may have punctuators that stream time calls.
    if known or node.supplier is not None or isinstance(node.operation, Process | Suppress):
        return TimeStep(node, min(known, default=None))
    return None


def _grace_of(operation: Operation) -> int | None:
    """The grace of the operation alone, in ms."""
    match operation:
        case WindowAggregate(start_ms=None) | SlidingAggregate() | SessionAggregate():
            return operation.grace_ms
        case StreamJoin(waiting=None) | SelfJoin():
            # A record finds a match as long as the store has not dropped the other record.
            windows = operation.windows
            return max(0, min(windows.before_ms, windows.after_ms)) + windows.grace_ms
        case StreamJoin():
            # After the grace, the other record has been emitted without a match.
            return operation.windows.grace_ms
        case StreamTableJoin(store=str()):
            return operation.grace_ms
        case _:
            return None


def _retention_of(spec: StoreSpec) -> int | None:
    """The age (ms) at which a store drops its entries."""
    return spec.retention_ms if spec.kind in EXPIRING_KINDS else spec.history_ms

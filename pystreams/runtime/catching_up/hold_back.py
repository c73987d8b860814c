"""Computes how much older than its stream time the results of a sub-topology can be, because steps hold them back."""

from __future__ import annotations

from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.operators.sliding_aggregate import SlidingAggregate
from pystreams.dsl.operators.stream_join import StreamJoin
from pystreams.dsl.operators.stream_table_join import StreamTableJoin
from pystreams.dsl.operators.suppress import Suppress
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import Operation, ProcessorNode


def hold_back_ms(sub: SubTopology) -> int:
    """The age of the oldest results that the steps of a sub-topology can still emit when all input up to a stream time
    is processed, in ms: summed along the longest way through the steps. Records that users' processors keep are not
    counted."""
    on_the_way: dict[str, int] = {}
    #: For each node the longest window whose result passes it. The result has the time of the window's start, and is
    #: held back from the window's end on.
    window_ms: dict[str, int] = {}
    for node in sub.nodes:
        if not isinstance(node, ProcessorNode):
            continue
        before = max((on_the_way.get(parent, 0) for parent in node.parents), default=0)
        window = max((window_ms.get(parent, 0) for parent in node.parents), default=0)
        window_ms[node.name] = max(window, _window_of(node.operation))
        on_the_way[node.name] = before + _held_back(node.operation, window)
    return max(on_the_way.values(), default=0)


def _held_back(operation: Operation, window_ms: int) -> int:
    """``window_ms`` is the longest window whose results reach the step."""
    match operation:
        case WindowAggregate(on_close=True, start_ms=None):
            return operation.size_ms + operation.grace_ms
        case SlidingAggregate(on_close=True):
            return operation.difference_ms + operation.grace_ms
        case SessionAggregate(on_close=True):
            return operation.gap_ms + operation.grace_ms
        case Suppress(until_close=True):
            return window_ms + operation.wait_ms
        case Suppress():
            return operation.wait_ms
        case StreamJoin(waiting=str()):
            # As in Java, records without a match are not emitted until the window of the last record that was read
            # closes, and that record may be as far ahead of them as their own windows reach.
            windows = operation.windows
            return 2 * (max(0, windows.before_ms, windows.after_ms) + windows.grace_ms)
        case StreamTableJoin(store=str()):
            return operation.grace_ms
        case _:
            return 0


def _window_of(operation: Operation) -> int:
    """The size of a window in ms. It is 0 for sessions, whose results have the time of their end, and for the unlimited
    window, which has no end that its results could wait for."""
    match operation:
        case WindowAggregate(start_ms=None):
            return operation.size_ms
        case SlidingAggregate():
            return operation.difference_ms
        case _:
            return 0

"""The grace period of a stream-table join, and the buffer in which records wait for it."""

from __future__ import annotations

from pystreams.dsl import table
from pystreams.dsl.context import StepPlace
from pystreams.dsl.durations import Duration, milliseconds
from pystreams.dsl.origins import TableOrigin
from pystreams.errors import TopologyError
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import checked


def refuse_grace(method: str, other: object) -> None:
    """Raise ``TopologyError`` if ``other``, with which a stream is joined, is not a table."""
    if not isinstance(other, table.KTable):
        raise TopologyError(
            f"{method} takes grace= with a table, not with {type(other).__name__}",
            hint="joins of two streams have a grace period in their windows: JoinWindows.of(..., grace=...)",
        )


def buffer(place: StepPlace, join: str, step: str | None, origin: TableOrigin, grace: Duration) -> StoreSpec:
    """The store for records of ``place`` that wait for ``grace`` before the step ``join``.

    Raises ``TopologyError`` if the table is not versioned, or keeps its versions for a shorter time. Source:
    KStreamImpl.doStreamTableJoin, StreamTableJoinNode.
    """
    grace_ms = milliseconds(grace, "grace")
    if origin.history_ms is None:
        raise TopologyError(
            "a join with a grace period needs a versioned table",
            where=join,
            why="a record that has waited is joined with the row of its own time",
            hint="give the table a history=, at least as long as the grace period",
        )
    if grace_ms > origin.history_ms:
        raise TopologyError(
            f"the table keeps versions for {origin.history_ms} ms, and records wait for {grace_ms} ms",
            where=join,
            why="the row of a record's time could expire before it is joined",
            hint=f"give the table history={grace_ms} or more",
        )
    name = checked(f"{join}-Buffer")
    if step is None:
        place.context.unnamed_store(name)
    return StoreSpec(name, "join_buffer", place.key, place.value, retention_ms=grace_ms)

"""``suppress``: the settings for holding back a table's changes, and the step that does so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from pystreams.dsl import table
from pystreams.dsl.context import StepPlace
from pystreams.dsl.durations import Duration, check_milliseconds, milliseconds
from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.operators.sliding_aggregate import SlidingAggregate
from pystreams.dsl.operators.suppress import Suppress
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.dsl.origins import SuppressOrigin
from pystreams.errors import TopologyError
from pystreams.misspelt import answers_misspelt
from pystreams.state.spec import StoreSpec
from pystreams.topology.graph import GraphNode, ProcessorGraphNode
from pystreams.topology.names import CHANGELOG_SUFFIX, checked
from pystreams.windowed import Windowed

K_contra = TypeVar("K_contra", contravariant=True)

_PREFIX = "KTABLE-SUPPRESS-"


class WhenFull(Enum):
    """The reaction of a buffer that reaches its limit. Source: BufferFullStrategy."""

    EMIT_EARLY = "emit_early"
    SHUT_DOWN = "shut_down"


@answers_misspelt
@dataclass(frozen=True, slots=True)
class Suppressed(Generic[K_contra]):
    """Which changes of a table are held back, and for how long: ``until_window_closes`` or ``until_time_limit``.

    Only the last change of each key is held back. The changes are kept in memory. ``max_records`` and ``max_bytes`` (of
    keys, values and record contexts) limit them for each partition, if they are given. With ``logged``, the changes are
    also written to a changelog and restored after a restart; ``changelog_config`` are settings of that topic.
    Source: org.apache.kafka.streams.kstream.Suppressed (KIP-328).
    """

    #: How long changes are held back; None: until the window closes.
    wait_ms: int | None
    max_records: int | None = None
    max_bytes: int | None = None
    when_full: WhenFull = WhenFull.SHUT_DOWN
    logged: bool = True
    changelog_config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.wait_ms is not None:
            check_milliseconds(self, wait_ms=0)
        for name in ("max_records", "max_bytes"):
            bound = getattr(self, name)
            if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 0):
                raise TopologyError(
                    f"{name}={bound!r} is not a valid limit of a buffer",
                    hint="give a whole number, or None for no limit",
                )
        if not isinstance(self.when_full, WhenFull):
            raise TopologyError(
                f"when_full={self.when_full!r} is not a reaction to a full buffer",
                hint="give WhenFull.EMIT_EARLY or WhenFull.SHUT_DOWN",
            )

    @classmethod
    def until_window_closes(
        cls,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> Suppressed[Windowed[Any]]:
        """Emit only the final result of each window, when stream time has passed its end and grace. A full buffer stops
        the application, because results that are emitted early would not be final."""
        return Suppressed(
            None, max_records, max_bytes, WhenFull.SHUT_DOWN, logged, dict(changelog_config or {})
        )

    @classmethod
    def until_time_limit(
        cls,
        wait: Duration,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: WhenFull = WhenFull.EMIT_EARLY,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> Suppressed[Any]:
        """Emit the last change of a key within ``wait`` of stream time after the first one."""
        wait_ms = milliseconds(wait, "wait")
        return Suppressed(wait_ms, max_records, max_bytes, when_full, logged, dict(changelog_config or {}))


def suppressed(
    this: table.KTable[Any, Any], asked: object, step: str | None, was: str | None
) -> table.KTable[Any, Any]:
    """``this`` with its changes held back. Source: KTableImpl.suppress."""
    if was is not None and step is None:
        raise TopologyError(
            "suppress takes was= only with step=",
            hint=f"name the step, which also names the buffer: step=..., was={was!r}",
        )
    if not isinstance(asked, Suppressed):
        raise TopologyError(
            f"suppress takes a Suppressed, not {asked!r}",
            hint="give Suppressed.until_window_closes() or Suppressed.until_time_limit(wait)",
        )
    place, origin = this._place, this._origin
    if origin.versioned:
        raise TopologyError(
            "the changes of a versioned table cannot be held back",
            where=place.name,
            why="they may be out of order, so the last one may not be the latest version",
            hint="leave out history=, or read the table into one without it: to_stream().to_table()",
        )
    context = place.context
    # Unlike in other steps, a given name uses up no number.
    name = context.names.step(_PREFIX, None) if step is None else checked(step)
    wait_ms = grace_ms(place.node) if asked.wait_ms is None else asked.wait_ms
    if step is None:
        store = context.names.store(_PREFIX)
        if asked.logged:
            context.unnamed("changelog topic", f"{store}{CHANGELOG_SUFFIX}")
    else:
        store = checked(f"{step}-store")
    origin.send_old_values(force=True)
    operation = Suppress(
        store,
        wait_ms,
        asked.wait_ms is None,
        asked.max_records,
        asked.max_bytes,
        asked.when_full is WhenFull.EMIT_EARLY,
    )
    spec = StoreSpec(
        store,
        "buffer",
        place.key,
        place.value,
        persistent=False,
        logged=asked.logged,
        changelog_config=asked.changelog_config,
        was=was,
    )
    node = ProcessorGraphNode(name, operation, spec)
    place.add(node)
    behind = StepPlace(context, name, node, place.sources, place.key, place.value)
    return table.KTable(behind, SuppressOrigin(operation, origin), None, queryable=False)


def grace_ms(node: GraphNode, chain: str = "") -> int:
    """The grace period of the windows above ``node`` (ms). Raises ``TopologyError`` if the path upwards ends at a step
    without windows. Source: GraphGraceSearchUtil."""
    operation = node.operation if isinstance(node, ProcessorGraphNode) else None
    if isinstance(operation, WindowAggregate | SlidingAggregate):
        return operation.grace_ms
    if isinstance(operation, SessionAggregate):
        return operation.gap_ms + operation.grace_ms
    chain = f"{node.name} -> {chain}" if chain else node.name
    parents = [parent for parent in node.parents if parent.name != "root"]
    if not parents:
        raise TopologyError(
            "suppress until the window closes needs a windowed table",
            where=chain,
            why="the table comes from a step without windows, so its rows are never final",
            hint="aggregate with windowed_by(...) before, or use Suppressed.until_time_limit(wait)",
        )
    return max(grace_ms(parent, chain) for parent in parents)

"""Joins of two tables by key: a change of either side changes the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment, misses_of_joiner
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed
from pystreams.dsl.operators.partners import Partner
from pystreams.dsl.operators.value_getter import JoinKind, ValueGetter, joiner_of_three
from pystreams.functions import UserFunction
from pystreams.record import Headers

#: The reason why a change of a versioned table is not joined. Source: KIP-914.
OUT_OF_ORDER = "not the latest version"


@dataclass(eq=False, slots=True)
class TableJoin(ObjectOperation):
    """Joins a change of one side; ``other`` reads the other side. ``right``: the change is of the right side, and the
    joiner still takes the left value first.

    Source: KTableKTableInnerJoin, KTableKTableLeftJoin, KTableKTableRightJoin, KTableKTableOuterJoin.
    """

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    other: ValueGetter
    joiner: UserFunction
    kind: JoinKind
    right: bool
    send_old_values: bool = False
    #: This side is versioned: only changes of the latest version are joined.
    from_versioned: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        get, send_old, drop = self.other.open(environment), self.send_old_values, environment.drop
        forward_change = change_forwarder(environment)
        join = joiner_of_three(self.joiner, swapped=self.right)
        # Whether a result needs the value that changed, and the other side's value.
        needs_own, needs_other = self.kind.needs(right=self.right)
        get_flushed = self.other.open(environment, flushed=True) if needs_own and needs_other else _nothing
        latest_only = self.from_versioned
        misses = misses_of_joiner(environment, self.joiner)
        if not self.right:
            environment.count_misses(misses, Partner.in_other_table())

        def go_on(look_up: Callable[..., Any]) -> None:
            nonlocal get
            get = look_up

        get = misses.until_found(get, go_on)

        def process(key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool) -> None:
            if key is None:
                drop("null key")
                return
            if latest_only and not is_latest:
                drop(OUT_OF_ORDER)
                return
            entry = get(key)
            if entry is None and new is None:
                # Both sides deleted the row between two flushes: the deletion has not been forwarded yet.
                entry = get_flushed(key)
            if entry is None:
                if needs_other or (new is None and old is None):
                    return
                other = None
            else:
                other, other_timestamp = entry
                if other_timestamp > timestamp:
                    timestamp = other_timestamp
            keeps = entry is not None and not needs_own
            joined = join(key, new, other) if new is not None or keeps else None
            joined_old = join(key, old, other) if send_old and (old is not None or keeps) else None
            forward_change(key, joined, joined_old, timestamp, headers, is_latest)

        return Operator(process)


def _nothing(_key: Any) -> None:
    """Stands for reading flushed values where a deletion is forwarded in any case."""


@dataclass(eq=False, slots=True)
class TableJoinMerge(ObjectOperation):
    """Merges the results of both sides into one table. Without a store it is inlined. Source:
    KTableKTableJoinMerger."""

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    store: str | None = None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        assert self.store is not None
        store = environment.store(self.store)
        encode_key, write, cached = store.encode_key, store.write, store.cached
        forward_change, send_old = change_forwarder(environment, store), self.send_old_values
        forward_flushed(environment, store, send_old)

        def process(key: Any, new: Any, old: Any, timestamp: int, headers: Headers, _is_latest: bool) -> None:
            write(encode_key(key), new, timestamp)
            if not cached:
                forward_change(key, new, old if send_old else None, timestamp, headers)

        return Operator(process)

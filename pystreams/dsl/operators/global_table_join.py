"""Joins of a stream with a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.functions import UserFunction
from pystreams.record import Headers


@dataclass(eq=False, slots=True)
class GlobalTableJoin(ObjectOperation):
    """``key_fn`` returns the key of the row to join with. It may return null, and the record's key may be null. Source:
    KStreamGlobalKTableJoin, KStreamKTableJoinProcessor."""

    table: str
    key_fn: UserFunction
    joiner: UserFunction
    left: bool

    @property
    def global_table(self) -> str:
        return self.table

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.global_store(self.table)
        encode_key, read = store.encode_key, store.read
        key_of, wants_key = self.key_fn.call, self.key_fn.takes_key
        joiner, takes_key = self.joiner.call, self.joiner.takes_key
        drop, forward = environment.drop, environment.forward
        misses = Misses(passes=self.left)
        environment.count_misses(misses, Partner.in_global_table(self.table))

        def go_on(look_up: Callable[..., Any]) -> None:
            nonlocal read
            read = look_up

        read = misses.until_found(read, go_on)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            # As in Java, it is called for a null value, too.
            row = key_of(key, value) if wants_key else key_of(value)
            if value is None or (row is None and not misses.passes):
                drop("null join key or value")
                return
            entry = None if row is None else read(encode_key(row))
            if entry is not None:
                other = entry[0]
            else:
                misses.records += 1
                if not misses.passes:
                    return
                other = None
            forward(key, joiner(key, value, other) if takes_key else joiner(value, other), timestamp, headers)

        return Operator(process)

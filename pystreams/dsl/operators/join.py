"""Joins of a stream with a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.value_getter import ValueGetter
from pystreams.functions import UserFunction
from pystreams.record import Headers


@dataclass(eq=False, slots=True)
class StreamTableJoin(ObjectOperation):
    """Only the stream's records give results, each with its own timestamp. Source: KStreamKTableJoinProcessor."""

    table: ValueGetter
    joiner: UserFunction
    left: bool

    def open(self, environment: OperatorEnvironment) -> Operator:
        get = self.table.open(environment)
        joiner, takes_key, left = self.joiner.call, self.joiner.takes_key, self.left
        drop, forward = environment.drop, environment.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop("null key or value")
                return
            entry = None if key is None else get(key)
            if entry is not None:
                other = entry[0]
            elif left:
                other = None
            else:
                return
            forward(key, joiner(key, value, other) if takes_key else joiner(value, other), timestamp, headers)

        return Operator(process)

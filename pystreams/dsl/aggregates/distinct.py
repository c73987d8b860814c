"""``approx_distinct``: about how many different values there are."""

from __future__ import annotations

from typing import Any

import msgspec

from pystreams.dsl.aggregates import hyperloglog
from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.selectors import Selector

_to_json = msgspec.json.Encoder(order="deterministic").encode


class Sketch(msgspec.Struct, frozen=True):
    """``registers`` (a sketch of ``hyperloglog``) of the values, and about how many they are."""

    about: int
    registers: bytes


class ApproxDistinct(Aggregation):
    """About how many different values there are. Values are different if their JSON is."""

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector, Sketch | None, shown_type=int, order_free=True)

    def update(self, state: Sketch | None, chosen: Any, timestamp: int) -> Sketch:
        before = hyperloglog.EMPTY if state is None else state.registers
        registers = hyperloglog.added(before, _to_json(chosen))
        if state is not None and registers is before:
            return state
        return Sketch(hyperloglog.estimate(registers), registers)

    def merge(self, one: Sketch | None, two: Sketch | None) -> Sketch | None:
        if one is None or two is None:
            return one or two
        registers = hyperloglog.merged(one.registers, two.registers)
        return Sketch(hyperloglog.estimate(registers), registers)

    def shown(self, state: Sketch | None) -> int:
        return 0 if state is None else state.about

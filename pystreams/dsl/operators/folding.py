"""Expresses counts and reductions as aggregations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pystreams.functions import UserFunction


def one_more(count: int, _: Any) -> int:
    """The aggregator of ``count``. It has a name, so that it is itself in other processes, too."""
    return count + 1


ZERO = UserFunction(lambda: 0, False, "count")
ONE_MORE = UserFunction(one_more, False, "count")
SUM = UserFunction(lambda one, two: one + two, False, "count")
NOTHING = UserFunction(lambda: None, False, "reduce")


def merging(merge: Callable[[Any, Any], Any] | None, step: str) -> UserFunction | None:
    """The function that merges two aggregates, if the user has given one. Raises ``TopologyError``."""
    return None if merge is None else UserFunction.of(merge, "merge", f"{step} (merge=)")


def aggregator_of(reducer: UserFunction) -> UserFunction:
    """A reducer as an aggregator that starts with None. It also merges the aggregates of two sessions."""
    combine = reducer.call
    if reducer.takes_key:
        return replace(reducer, call=lambda k, a, v: v if a is None else combine(k, a, v))
    return replace(reducer, call=lambda a, v: v if a is None else combine(a, v))

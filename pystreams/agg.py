"""Declared aggregates: what is computed of the values of each key, without a function.

::

    from pystreams import agg

    orders.group_by_key().aggregate(total=agg.sum("cents"), n=agg.count(), mean=agg.mean("cents"), name="totals")

Each takes ``of``: the name of a field, a function of the value, or nothing for the value itself. As in SQL, None is
ignored, and a result without values is None (a count is 0). NaN counts as None, because JSON does not have it.
"""

from __future__ import annotations

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.declaring import Aggregate
from pystreams.dsl.aggregates.distinct import ApproxDistinct
from pystreams.dsl.aggregates.numbers import Count, CountRecords, Mean, Sum
from pystreams.dsl.aggregates.ordered import Max, Min, Top, TopBy
from pystreams.dsl.aggregates.selectors import Of
from pystreams.dsl.aggregates.timed import First, Last
from pystreams.dsl.expressions import Expression
from pystreams.errors import TopologyError
from pystreams.functions import locate

__all__ = [
    "Aggregate",
    "Aggregation",
    "Of",
    "approx_distinct",
    "count",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "sum",
    "top",
]


def count(of: Of = None) -> Aggregate:
    """The number of records (int); with ``of``, of those of which it chooses something that is not None."""
    if of is None:
        return Aggregate("agg.count()", lambda values: CountRecords(values.anything(None)))
    return Aggregate(_spelled("count", of), lambda values: Count(values.anything(of)))


def sum(of: Of = None) -> Aggregate:
    """The sum of numbers: int, float or Decimal, as they are."""
    return Aggregate(_spelled("sum", of), lambda values: Sum(values.numbers(of, result=True)))


def mean(of: Of = None) -> Aggregate:
    """The arithmetic mean of numbers (float; of Decimals a Decimal)."""
    return Aggregate(_spelled("mean", of), lambda values: Mean(values.numbers(of)))


def min(of: Of = None) -> Aggregate:
    """The smallest value."""
    return Aggregate(_spelled("min", of), lambda values: Min(values.comparable(of, result=True)))


def max(of: Of = None) -> Aggregate:
    """The largest value."""
    return Aggregate(_spelled("max", of), lambda values: Max(values.comparable(of, result=True)))


def first(of: Of = None) -> Aggregate:
    """The value of the record with the smallest timestamp, even if it arrived later; of several with this timestamp,
    the one that was processed first."""
    return Aggregate(_spelled("first", of), lambda values: First(values.kept(of, result=True)))


def last(of: Of = None) -> Aggregate:
    """The value of the record with the greatest timestamp, even if others arrived later; of several with this
    timestamp, the one that was processed last."""
    return Aggregate(_spelled("last", of), lambda values: Last(values.kept(of, result=True)))


def approx_distinct(of: Of = None) -> Aggregate:
    """About how many different values there are (int): a HyperLogLog with a standard error of 1.6 %, and nearly exact
    up to a few hundred values. Values are different if their JSON is."""
    return Aggregate(_spelled("approx_distinct", of), lambda values: ApproxDistinct(values.anything(of)))


def top(n: int, of: Of = None, *, by: Of = None) -> Aggregate:
    """The ``n`` largest values (a tuple, the largest first); equal ones as often as they occur.

    With ``by``: what ``of`` chooses of the ``n`` records with the largest ``by``; of records with an equal ``by``, the
    earlier ones.
    """
    spelled = f"agg.top({n!r}, {_shown(of)}{'' if by is None else f', by={_shown(by)}'})"
    number: object = n
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise TopologyError(f"{spelled} keeps {n!r} values", hint="give a whole number, 1 or more")
    if by is None:
        return Aggregate(spelled, lambda values: Top(values.comparable(of), n))
    return Aggregate(spelled, lambda values: TopBy(values.kept(of), n, values.comparable(by)))


def _spelled(name: str, of: Of) -> str:
    return f"agg.{name}({'' if of is None else _shown(of)})"


def _shown(of: Of) -> str:
    return repr(of) if of is None or isinstance(of, str | Expression) else locate(of)

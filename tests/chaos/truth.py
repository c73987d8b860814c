"""What the application must have written: a plain computation over its input, compared record by record.

spent, regions   the sums of a key are the sums after its first order, its second, and so on: counted from 1 to n,
                 each count once, in order, and the steps between the sums are its orders' cents, each once
paid             every pair within the time, once
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.chaos.program import PAID_WITHIN_MS, WINDOW_MS, Order, Paid, Payment, Sum
from tests.live.support import Read

#: A customer, or a region and the beginning of a window.
Key = Any


@dataclass(frozen=True)
class Truth:
    """``cents`` of each key's orders, and the pairs by order."""

    spent: Mapping[Key, Counter[int]]
    paid: Mapping[str, Counter[Paid]]
    regions: Mapping[Key, Counter[int]]


def compute(orders: Iterable[Read], payments: Iterable[Read], customers: Mapping[str, str]) -> Truth:
    """From all records of the input topics."""
    spent: defaultdict[Key, Counter[int]] = defaultdict(Counter)
    paid: defaultdict[str, Counter[Paid]] = defaultdict(Counter)
    regions: defaultdict[Key, Counter[int]] = defaultdict(Counter)
    payments_of: defaultdict[str, list[tuple[int, Payment]]] = defaultdict(list)
    for order_id, payment, timestamp in payments:
        payments_of[order_id].append((timestamp, payment))
    for order_id, order, ordered in orders:
        assert isinstance(order, Order)
        spent[order.customer][order.cents] += 1
        for at, payment in payments_of[order_id]:
            if abs(at - ordered) <= PAID_WITHIN_MS:
                paid[order_id][Paid(order.customer, order.cents, payment.number)] += 1
                later = max(at, ordered)
                regions[customers[order.customer], later - later % WINDOW_MS][order.cents] += 1
    return Truth(spent, paid, regions)


def check_sums(topic: str, found: Iterable[tuple[Key, Sum]], truth: Mapping[Key, Counter[int]]) -> None:
    """``found``: the records of a topic of sums, each key's in order. Raises ``AssertionError``."""
    sums: defaultdict[Key, list[Sum]] = defaultdict(list)
    for key, value in found:
        sums[key].append(value)
    unknown = sums.keys() - truth.keys()
    assert not unknown, f"{topic}: nobody has ordered for {sorted(unknown)[:3]}"
    for key, cents in truth.items():
        counts = [value.count for value in sums[key]]
        expected = [*range(1, cents.total() + 1)]
        assert counts == expected, f"{topic}, {key}: {_difference(counts, expected)}"
        totals = [0, *(value.cents for value in sums[key])]
        steps = Counter(after - before for before, after in pairwise(totals))
        assert steps == cents, (
            f"{topic}, {key}: counted but not ordered {steps - cents}, ordered but not counted {cents - steps}"
        )


def check_pairs(topic: str, found: Iterable[tuple[str, Paid]], truth: Mapping[str, Counter[Paid]]) -> None:
    """``found``: the records of a topic of pairs. Raises ``AssertionError``."""
    pairs = Counter(found)
    expected = Counter({(order, pair): count for order, of in truth.items() for pair, count in of.items()})
    assert pairs == expected, (
        f"{topic}: {(pairs - expected).total()} too many, the first {[*(pairs - expected)][:3]}; "
        f"{(expected - pairs).total()} missing, the first {[*(expected - pairs)][:3]}"
    )


def _difference(counts: list[int], expected: list[int]) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(counts, expected, strict=False)) if a != b),
        min(len(counts), len(expected)),
    )
    return (
        f"{len(counts)} counts of {len(expected)}, where {at + 1} belongs: {counts[max(0, at - 2) : at + 3]}"
    )

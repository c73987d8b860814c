"""The comparison accepts what must have been written, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.chaos.program import Order, Paid, Payment, Sum
from tests.chaos.truth import check_pairs, check_sums, compute
from tests.live.support import Read

SPENT = {"ann": Counter({5: 2, 7: 1}), "bob": Counter({9: 1})}
RIGHT = [
    ("ann", Sum(1, 7)),
    ("bob", Sum(1, 9)),
    ("ann", Sum(2, 12)),
    ("ann", Sum(3, 17)),
]
PAIR = Paid("ann", 5, 0)


def test_what_must_come_out_of_an_input():
    orders = [
        Read("o1", Order("ann", 5), 20_000),
        Read("o2", Order("bob", 7), 21_000),
        Read("o3", Order("ann", 7), 9_000),
    ]
    payments = [
        Read("o1", Payment(0), 30_000),
        Read("o1", Payment(1), 30_001),
        Read("o1", Payment(2), 10_000),
        Read("o3", Payment(0), 9_999),
    ]
    truth = compute(orders, payments, {"ann": "north", "bob": "south"})
    assert truth.spent == {"ann": {5: 1, 7: 1}, "bob": {7: 1}}
    assert truth.paid == {
        "o1": {Paid("ann", 5, 0): 1, Paid("ann", 5, 2): 1},
        "o3": {Paid("ann", 7, 0): 1},
    }
    assert truth.regions == {("north", 30_000): {5: 1}, ("north", 20_000): {5: 1}, ("north", 0): {7: 1}}


def test_sums_in_any_order_of_the_orders_are_right():
    check_sums("spent", RIGHT, SPENT)
    check_sums("spent", [RIGHT[1], ("ann", Sum(1, 5)), ("ann", Sum(2, 10)), ("ann", Sum(3, 17))], SPENT)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (RIGHT[:3], "2 counts of 3, where 3 belongs"),
        ([*RIGHT, ("ann", Sum(3, 17))], "4 counts of 3, where 4 belongs"),
        ([*RIGHT, ("ann", Sum(4, 24))], "4 counts of 3"),
        ([RIGHT[0], *RIGHT], "4 counts of 3, where 2 belongs"),
        ([RIGHT[2], RIGHT[0], RIGHT[1], RIGHT[3]], "where 1 belongs"),
        ([*RIGHT[:3], ("ann", Sum(3, 19))], "not ordered Counter.{7: 1}., ordered but not counted .*5: 1"),
        ([*RIGHT, ("eve", Sum(1, 1))], "nobody has ordered for .*eve"),
    ],
)
def test_other_sums_are_refused(found: list[tuple[str, Sum]], why: str):
    with pytest.raises(AssertionError, match=why):
        check_sums("spent", found, SPENT)


def test_each_pair_comes_once():
    truth = {"o1": Counter({PAIR: 1}), "o2": Counter({PAIR: 1})}
    check_pairs("paid", [("o2", PAIR), ("o1", PAIR)], truth)
    with pytest.raises(AssertionError, match=r"1 too many.*0 missing"):
        check_pairs("paid", [("o2", PAIR), ("o1", PAIR), ("o1", PAIR)], truth)
    with pytest.raises(AssertionError, match=r"0 too many.*1 missing"):
        check_pairs("paid", [("o2", PAIR)], truth)

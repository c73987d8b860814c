"""A join that has found something once works with its own functions alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.dsl.operators.partners import Misses


def test_until_something_is_found_the_look_ups_in_vain_are_counted() -> None:
    rows = {"a": 1}
    in_force: list[Callable[..., Any]] = []
    misses = Misses(every=False)
    look_up = misses.until_found(rows.get, in_force.append)
    assert [look_up(key) for key in "xyz"] == [None] * 3
    assert (misses.records, misses.found, in_force) == (3, False, [])
    assert look_up("a") == 1
    assert (misses.records, misses.found, in_force) == (3, True, [rows.get])


def test_a_join_that_counts_all_misses_is_not_counted_for() -> None:
    misses = Misses()
    look_up = misses.until_found({}.get, lambda own: None)
    look_up("x")
    assert (misses.records, misses.found) == (0, False)


def test_one_side_that_finds_something_is_enough_for_both() -> None:
    done: list[str] = []
    misses = Misses(every=False)
    left = misses.counting(str.encode, lambda: done.append("left"))
    right = misses.counting(str.encode, lambda: done.append("right"))
    join = misses.noting(lambda key, own, other: (own, other), lambda: done.append("joined"))
    assert [left("a"), right("b")] == [b"a", b"b"]
    assert join("a", 1, None) == (1, None)
    assert (misses.records, misses.found, done) == (2, False, [])
    assert join("a", 1, 2) == (1, 2)
    assert (misses.found, done) == (True, ["joined"])
    left("a")
    right("b")
    assert (misses.records, done) == (2, ["joined", "left", "right"])

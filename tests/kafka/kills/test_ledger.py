"""The audit accepts what at least once allows, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from apps.flights import Delays, Flight
from tests.kafka.kills.journal import RUNNING, Life
from tests.kafka.kills.ledger import Total, audit, input_of
from tests.kills.flights import Raw

DAY_MS = 86_400_000
WINDOW = b"UA" + (0).to_bytes(8, "big")
#: Minutes of delay of the flights of one carrier on one day, in the order of the log.
DELAYS = [3, 5, 8, 13, 21, 34]


def given():
    encode = msgspec.json.encode
    return input_of([(b"UA", encode(Flight(1, "JFK", "LAX", 600, delay)), 1_000) for delay in DELAYS])


def life(number: int, first: int, restored: int, last: int) -> Life:
    return Life(number, 0, first, restored, last, RUNNING)


def changelog(*totals: tuple[int, int]) -> list[Raw]:
    return [
        Raw(offset, WINDOW + bytes(4), msgspec.json.encode(Delays("United", *total)), 1_000)
        for offset, total in enumerate(totals)
    ]


UNDISTURBED = changelog((2, 8), (6, 84))
#: Killed after the fifth flight, with three of them in the changelog and two committed.
LIVES = [life(1, 0, 0, 4), life(2, 2, 2, 5)]
#: The third flight counts twice, the fourth and the fifth were processed again and count once.
DISTURBED = changelog((2, 8), (3, 16), (5, 16 + 8 + 13), (7, 16 + 8 + 13 + 21 + 34))


def test_an_undisturbed_run_equals_the_truth():
    account, state = audit(given(), [life(1, 0, 0, 5)], UNDISTURBED)
    assert (account.again, account.doubled, state[WINDOW]) == (0, 0, Total(6, 84))


def test_what_was_processed_again_is_distinguished_from_what_counts_twice():
    account, state = audit(given(), LIVES, DISTURBED)
    assert (account.lives, account.again, account.doubled) == (2, 3, 1)
    assert state[WINDOW] == Total(7, sum(DELAYS) + 8)


@pytest.mark.parametrize(
    ("lives", "changes", "why"),
    [
        ([life(1, 0, 0, 5)], changelog((2, 8), (5, 50)), "lost"),
        ([life(1, 0, 0, 5)], changelog((2, 8), (7, 92)), "more than there are"),
        ([life(1, 0, 0, 5)], changelog((2, 8), (6, 85)), "expected"),
        ([life(1, 0, 0, 5)], changelog((2, 8), (2, 8), (6, 84)), "twice, or backward"),
        ([life(1, 0, 0, 4)], UNDISTURBED, "not processed"),
        (LIVES, changelog((2, 8), (3, 16), (4, 37), (6, 84)), "twice, or backward|expected"),
        ([life(1, 0, 0, 4), life(2, 3, 2, 5)], changelog((1, 3), (2, 8), (5, 76)), "lost"),
        ([life(1, 0, 0, 1), life(2, 2, 2, 5)], DISTURBED, "not read"),
        ([life(1, 1, 0, 5)], changelog((5, 81)), "not the first"),
    ],
)
def test_anything_else_is_refused(lives: list[Life], changes: list[Raw], why: str):
    with pytest.raises(AssertionError, match=why):
        audit(given(), lives, changes)

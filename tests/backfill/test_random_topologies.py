"""Random topologies and cuts, a few of them; ``python -m tests.backfill.random_topologies`` runs as many as wanted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.backfill.against_java import Question, differences
from tests.backfill.random_topologies import BATCHES, FOLDED, REPLAYED, RESTARTED, SEAMLESS, check, equal
from tests.backfill.trials import Trial, fuzzed, recorded

pytestmark = pytest.mark.live

SEED = 11
COUNT = 4


def _recorded() -> list[Trial]:
    return random.Random(SEED).sample(list(recorded(SEED)), COUNT)


@pytest.mark.parametrize("trial", _recorded(), ids=lambda trial: trial.name)
def test_recorded_topologies_keep_what_is_promised(trial: Trial, tmp_path: Path) -> None:
    assert {BATCHES, REPLAYED} <= set(check(trial, tmp_path, []))


@pytest.mark.oracle
@pytest.mark.slow
def test_random_topologies_keep_what_is_promised_and_agree_with_java(tmp_path: Path) -> None:
    questions: list[Question] = []
    came = [
        what
        for number, trial in enumerate(fuzzed(SEED, COUNT))
        for what in check(trial, tmp_path / str(number), questions)
    ]
    assert {BATCHES, REPLAYED, FOLDED, RESTARTED, SEAMLESS} <= set(came)
    assert questions
    assert differences(questions) == []


def test_a_difference_is_named_by_its_place() -> None:
    equal({"a": [1, (2,)]}, {"a": [1, (2,)]}, "here")
    with pytest.raises(AssertionError, match=r"here, a, 1: \(3,\) is not \(2,\)"):
        equal({"a": [1, (3,)]}, {"a": [1, (2,)]}, "here")
    with pytest.raises(AssertionError, match="here, b: only one has it"):
        equal({"a": []}, {"a": [], "b": 1}, "here")
    with pytest.raises(AssertionError, match="here: 2 and 1 of them"):
        equal([1, 2], [1], "here")

"""Whatever the topology: live stores are found equal to history, as far as a live run has one result."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.backfill.confluence import settled
from tests.backfill.random_topologies import VERIFIED, check_verified
from tests.backfill.trials import Trial, recorded

pytestmark = pytest.mark.live

SEED = 17
COUNT = 10


def _trials() -> list[Trial]:
    chosen = [trial for trial in recorded(SEED) if settled(trial.scenario).stores]
    return random.Random(SEED).sample(chosen, COUNT)


@pytest.mark.parametrize("trial", _trials(), ids=lambda trial: trial.name)
def test_recorded_topologies_are_equal(trial: Trial, tmp_path: Path) -> None:
    assert check_verified(trial.with_changelogs(), tmp_path) == VERIFIED

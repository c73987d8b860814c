"""Random topologies and cuts, a few of them; ``python -m tests.backfill.random_topologies`` runs as many as wanted."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.backfill.random_topologies import EQUAL, NOT_COMPARED, REFUSED, Trial, check, fuzzed, recorded
from tests.conformance import oracle

pytestmark = pytest.mark.live

SEED = 11
COUNT = 6


def _recorded() -> list[Trial]:
    return random.Random(SEED).sample(list(recorded(SEED)), COUNT)


@pytest.mark.parametrize("trial", _recorded(), ids=lambda trial: trial.name)
def test_recorded_topologies_go_on_as_live(trial: Trial, tmp_path: Path) -> None:
    assert check(trial, tmp_path) in {EQUAL, NOT_COMPARED, REFUSED}


@pytest.mark.oracle
@pytest.mark.skipif(oracle.VARIABLE not in os.environ, reason=f"{oracle.VARIABLE} names no oracle")
def test_random_topologies_go_on_as_live(tmp_path: Path) -> None:
    came = [check(trial, tmp_path / str(number)) for number, trial in enumerate(fuzzed(SEED, COUNT))]
    assert EQUAL in came

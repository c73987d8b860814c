"""``kill -9`` at any moment loses nothing and doubles nothing. `make kills` does the same at length."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kills.aim import COMMIT, ELSEWHERE, RESTORE
from tests.kills.job import measure
from tests.kills.scenarios import SEPARATE, SHARED, Chaos

pytestmark = pytest.mark.slow

SEED = 3
#: Enough work to be killed in; `make kills` has all.
FLIGHTS = 80_000


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    """Scenarios beside the results of an undisturbed run."""
    folder = tmp_path_factory.mktemp("chaos")
    return Chaos(folder, measure(folder / "baseline", FLIGHTS))


def test_killed_at_a_random_moment_and_the_restart_once_more(chaos):
    assert chaos.random_moment(SEED).kills


def test_killed_again_and_again_while_it_works_on_one_log(chaos):
    assert chaos.chain(SEED, 3, lose_state=False).kills


def test_killed_again_and_again_and_its_state_deleted_each_time(chaos):
    assert chaos.chain(SEED, 3, lose_state=True).kills


@pytest.mark.parametrize("points", [COMMIT, RESTORE, ELSEWHERE], ids=["commit", "restore", "elsewhere"])
def test_killed_at_every_step(chaos, points):
    assert chaos.aimed_chain(points, SEED).kills >= len(points) * 3 // 4


@pytest.mark.parametrize("states", [SHARED, SEPARATE], ids=["one-state-directory", "one-each"])
def test_one_of_two_processes_killed(chaos, states):
    outcome = chaos.two_processes(SEED, 2, states)
    assert outcome.kills == outcome.meant

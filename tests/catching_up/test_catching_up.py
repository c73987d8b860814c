"""Catching up gives the result of having been there: what is in the log before the start counts as if it came in the
order of time, however many partitions, hops, threads and workers there are, and whoever is killed.

A few histories, chosen so that they have all kinds of steps; ``python -m tests.catching_up`` runs as many as wanted.
Where processes are started, one history has the workers, the threads, the joins or the windows that another lacks.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.catching_up.histories import trial
from tests.catching_up.running import check
from tests.catching_up.tables import table_trial
from tests.examples import chosen
from tests.kafka.support import Cluster
from tests.live.support import Log

pytestmark = pytest.mark.live

ONE_PROCESS = {"workers": 1, "kills": ()}


@pytest.mark.parametrize("seed", [100, 101, 102, 103, 104, 105, 106, 110, 112, 116])
def test_one_thread_has_the_result_of_the_order_of_time(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(trial(seed, threads=1, **ONE_PROCESS), log)


@pytest.mark.parametrize("seed", [200, 201, 203, 205, 210, 211])
def test_several_threads_have_the_result_of_the_order_of_time(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(trial(seed, threads=2 + seed % 3, **ONE_PROCESS), log)


@pytest.mark.slow
@pytest.mark.parametrize("seed", chosen(range(300, 303), (301, 302).__contains__))
def test_workers_have_the_result_of_the_order_of_time(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(trial(seed, workers=2 + seed % 2, kills=()), log)


@pytest.mark.slow
@pytest.mark.parametrize("seed", chosen((402, 403), (402,).__contains__))
def test_who_is_killed_has_the_result_of_the_order_of_time(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(trial(seed, workers=1 + seed % 2, kills=(40 + seed % 7, 90)), log)


@pytest.mark.parametrize("seed", [800, 801, 802, 804, 805, 806, 808, 809])
def test_tables_that_change_behind_a_hop_and_joins_with_their_versions_have_the_result_of_the_order_of_time(
    seed: int, tmp_path: Path
):
    with closing(Log(tmp_path)) as log:
        check(table_trial(seed, **ONE_PROCESS), log)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [820, 823])
def test_so_they_have_with_workers_of_which_one_is_killed(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(table_trial(seed, workers=1 + seed % 2, kills=(50,)), log)


@pytest.mark.kafka
@pytest.mark.parametrize("seed", chosen((830, 833), (833,).__contains__))
def test_so_they_have_on_kafka(seed: int, cluster: Cluster):
    check(table_trial(seed, "kafka", **ONE_PROCESS), cluster)


@pytest.mark.kafka
@pytest.mark.parametrize("seed", chosen((500, 502, 505), (500, 505).__contains__))
def test_on_kafka_one_process_has_the_result_of_the_order_of_time(seed: int, cluster: Cluster):
    check(trial(seed, "kafka", **ONE_PROCESS), cluster)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("seed", chosen((601, 602), (601,).__contains__))
def test_on_kafka_workers_of_which_one_is_killed_have_the_result_of_the_order_of_time(
    seed: int, cluster: Cluster
):
    check(trial(seed, "kafka", workers=1 + seed % 3, kills=(60,)), cluster)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("seed", chosen((620, 622), (622,).__contains__))
def test_on_kafka_exactly_once_who_is_killed_has_the_result_of_the_order_of_time(seed: int, cluster: Cluster):
    check(trial(seed, "kafka", workers=1 + seed % 2, kills=(50, 80), exactly_once=True), cluster)

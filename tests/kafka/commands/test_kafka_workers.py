"""``run --workers`` on Kafka: workers share the tasks, one that is killed costs duplicates at most, a stop none."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.cli.workers.workers_kit import ROOT, WorkersRun
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.live.support import eventually

WORKERS = 3
READ = ("lines", "wordcount-counts-repartition")
WORDS = [f"word{number}" for number in range(40)]
SETTINGS = {
    "session_timeout_ms": SESSION_TIMEOUT_MS,
    "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
    "commit_interval_ms": 100,
}

Start = Callable[..., WorkersRun]


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    """Starts ``pystreams run apps.wordcount --workers 3``."""
    cluster.create("lines", "word-counts", partitions=4)
    runs: list[WorkersRun] = []

    def start(*options: str) -> WorkersRun:
        pairs = [part for name, value in SETTINGS.items() for part in ("-s", f"{name}={value}")]
        command = ["apps.wordcount", "--workers", str(WORKERS), "--state-dir", str(cluster.path / "state")]
        environment = {"PYSTREAMS_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
        runs.append(WorkersRun(ROOT, *command, *pairs, *options, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


class Lines:
    """Lines of random words, and how often each word has been written."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._choose = random.Random(3)
        self.counts: Counter[str] = Counter()

    def write(self, number: int) -> None:
        lines = [self._choose.choices(WORDS, k=8) for _ in range(number)]
        self._cluster.write("lines", [(words[0], " ".join(words), 0) for words in lines], value=str)
        for words in lines:
            self.counts.update(words)


@pytest.mark.slow
def test_a_clean_stop_costs_nothing_and_a_kill_loses_nothing_and_costs_a_bounded_number_of_duplicates(
    cluster: Cluster, start: Start
):
    lines = Lines(cluster)
    lines.write(1_000)
    first = start()
    first.says("^running ")
    first.all_there(WORKERS)
    lines.write(1_000)
    first.send(signal.SIGTERM)
    first.ends_with(0)
    assert "all is committed" in first.text
    assert cluster.admin.group_members("wordcount") == []
    assert f"{WORKERS} workers, 0 restarts" in first.text
    run = start()
    run.says("^running ")
    before = run.all_there(WORKERS)
    eventually(lambda: cluster.all_committed("wordcount", *READ), "all is committed")
    assert cluster.table("word-counts") == lines.counts
    committed = cluster.committed("wordcount")
    lines.write(5_000)
    eventually(lambda: cluster.committed("wordcount") != committed, "a commit")
    time.sleep(random.Random(3).uniform(0, 0.3))  # a random moment is what this test is about
    victim = 2
    os.kill(before[victim], signal.SIGKILL)
    run.says(f"worker {victim} was killed by SIGKILL.* it starts again in ")
    after = run.all_there(WORKERS)
    assert {number for number in after if after[number] != before[number]} == {victim}
    lines.write(1_000)
    eventually(lambda: cluster.all_committed("wordcount", *READ), "all is committed")
    run.send(signal.SIGINT)
    run.ends_with(0)
    assert f"{WORKERS} workers, 1 restart." in run.text
    found = cluster.table("word-counts")
    again = {word: found[word] - count for word, count in lines.counts.items()}
    print(f"words counted again after a kill: {sum(again.values())} of {lines.counts.total()}")
    assert min(again.values()) >= 0, again
    # What comes twice is what one worker of three did since its last commit.
    assert sum(again.values()) <= lines.counts.total() / 2


def test_a_broker_that_is_not_there_is_reported_once(cluster: Cluster, start: Start):
    run = start("--bootstrap-servers", "127.0.0.1:1")
    run.ends_with(4)
    assert run.text.count("Kafka cannot be reached") == 1

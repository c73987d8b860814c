"""Applications run unchanged on Kafka, alone and as several processes. Those that are killed: ``kafka/kills``."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from apps import flights, wordcount
from apps.flights_feed import feed, read_rows
from apps.flights_report import read_results
from pystreams import Streams, open_log
from pystreams.errors import TopologyError
from tests.kafka.server import ROOT
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.kills.flights import data_of
from tests.live.support import caught_up, eventually

READ = ("lines", "wordcount-counts-repartition")
WORDS = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "tis", "nobler", "in", "mind"]


class Lines:
    """Lines of random words, and how often each word has been written."""

    def __init__(self, cluster: Cluster, partitions: int) -> None:
        cluster.create("lines", "word-counts", partitions=partitions)
        self.cluster = cluster
        self.choose = random.Random(1)
        self.counts: Counter[str] = Counter()
        self.written = 0

    def write(self, lines: int) -> None:
        chosen = [self.choose.choices(WORDS, k=8) for _ in range(lines)]
        records = [
            (str(self.written + i), " ".join(words), self.written + i) for i, words in enumerate(chosen)
        ]
        self.cluster.write("lines", records, value=str)
        self.written += lines
        for words in chosen:
            self.counts.update(words)


def word_counts(cluster: Cluster, **settings) -> Streams:
    """The application of the repository, started in this process."""
    config = wordcount.app.config.override(
        {"state_dir": cluster.path / "state", "poll_ms": 10, "commit_interval_ms": 100, **settings}
    )
    streams = Streams(wordcount.app, config, cluster.broker)
    cluster._stack.callback(streams.close, 60_000)
    streams.start()
    return streams


@pytest.fixture
def processes(cluster: Cluster) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Those still alive are stopped at the end."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def start_process(cluster: Cluster, name: str, *options: str) -> subprocess.Popen[bytes]:
    """``pystreams run apps.wordcount`` as a user starts it, with a state directory of its own."""
    settings = {
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "commit_interval_ms": 100,
    }
    pairs = [part for setting, value in settings.items() for part in ("-s", f"{setting}={value}")]
    command = [sys.executable, "-m", "pystreams", "run", "apps.wordcount", *pairs, *options]
    log = (cluster.path / f"{name}.log").open("ab")
    with log:
        return subprocess.Popen(
            [*command, "--state-dir", str(cluster.path / name)],
            cwd=ROOT,
            env={**os.environ, "PYSTREAMS_BOOTSTRAP_SERVERS": cluster.bootstrap_servers},
            stdout=log,
            stderr=log,
        )


def members(cluster: Cluster) -> int:
    return len(cluster.admin.group_members("wordcount"))


def test_word_counts_are_right_and_a_restart_goes_on_where_it_stopped(cluster: Cluster):
    lines = Lines(cluster, 3)
    for threads in (1, 2):
        lines.write(1_000)
        streams = word_counts(cluster, num_stream_threads=threads)
        caught_up(streams)
        assert cluster.table("word-counts") == lines.counts
        assert streams.progress().records == 9_000  # lines and words, each once
        assert streams.close(60_000)
        assert cluster.admin.group_members("wordcount") == []


def test_state_that_was_lost_comes_back_from_the_changelog(cluster: Cluster):
    lines = Lines(cluster, 2)
    lines.write(500)
    streams = word_counts(cluster)
    caught_up(streams)
    assert streams.close(60_000)
    lines.write(500)
    streams = word_counts(cluster, state_dir=cluster.path / "elsewhere")
    caught_up(streams)
    assert cluster.table("word-counts") == lines.counts


def test_internal_topics_have_javas_names_and_settings(cluster: Cluster):
    Lines(cluster, 3).write(10)
    caught_up(word_counts(cluster))
    topics = cluster.admin.describe_topics()
    assert sorted(topics) == [
        "lines",
        "word-counts",
        "wordcount-counts-changelog",
        "wordcount-counts-repartition",
        "wordcount-pystreams-topology-changelog",
    ]
    changelog, repartition = topics["wordcount-counts-changelog"], topics["wordcount-counts-repartition"]
    assert (changelog.partitions, changelog.config["cleanup.policy"]) == (3, "compact")
    assert (repartition.partitions, repartition.config["cleanup.policy"]) == (3, "delete")
    assert (repartition.config["retention.ms"], repartition.config["segment.bytes"]) == ("-1", "52428800")


def test_another_topology_is_refused_by_name_and_does_not_disturb_the_group(cluster: Cluster):
    lines = Lines(cluster, 2)
    lines.write(100)
    good = word_counts(cluster)
    caught_up(good)
    other = cluster.app("wordcount")
    words = other.stream("lines", value=str).flat_map_values(str.split).map_values(str.upper)
    words.group_by(lambda word: word).count(name="counts").to_stream().to("word-counts")
    refused = cluster.start(other)
    eventually(lambda: refused.finished, "the other application ends")
    assert isinstance(refused.failure, TopologyError)
    assert "refuses this member" in str(refused.failure)
    assert "the first difference: sub-topology 0: node " in str(refused.failure)
    lines.write(100)
    caught_up(good)
    assert cluster.table("word-counts") == lines.counts


@pytest.mark.slow
def test_flights_of_2013_equal_the_plain_computation(cluster: Cluster):
    """``live/test_flights.py`` has all of them."""
    with data_of(20_000) as folder:
        with open_log(bootstrap_servers=cluster.bootstrap_servers) as log:
            assert feed(log, folder) == 20_000
        rows = list(read_rows(folder))
    config = flights.app.config.override({"state_dir": cluster.path / "state"})
    Streams(flights.app, config, cluster.broker).run(until_caught_up=True)
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["dep_time"] != "NA":
            of_day = sums.setdefault((row["carrier"], row["time_hour"][:10]), [0, 0])
            of_day[0] += 1
            of_day[1] += int(row["dep_delay"])
    with open_log(bootstrap_servers=cluster.bootstrap_servers) as log:
        results = read_results(log)
    found = {
        (carrier, day.isoformat()): (r.departures, r.mean_delay) for (carrier, day), r in results.items()
    }
    assert found == {key: (count, minutes / count) for key, (count, minutes) in sums.items()}


@pytest.mark.slow
def test_two_processes_share_the_tasks_and_one_takes_over_when_the_other_stops(
    cluster: Cluster, processes: list[subprocess.Popen[bytes]]
):
    lines = Lines(cluster, 4)
    processes += [start_process(cluster, "one"), start_process(cluster, "two")]
    eventually(lambda: members(cluster) == 2, "two members")
    lines.write(2_000)
    eventually(lambda: cluster.all_committed("wordcount", *READ), "all is committed")
    assert cluster.table("word-counts") == lines.counts
    assert all(any((cluster.path / name).rglob("1_*")) for name in ("one", "two"))
    processes[0].terminate()
    assert processes[0].wait(30) == 0
    assert members(cluster) == 1
    lines.write(2_000)
    eventually(lambda: cluster.all_committed("wordcount", *READ), "all is committed")
    assert cluster.table("word-counts") == lines.counts

"""Dashboard and alert rules ask for metrics and labels that a running application has: with tasks, standbys, restores,
late records, dead letters, and workers that die."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from pystreams import Streams, Suppressed, TimeWindows
from pystreams.ids import TopicPartition
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.watched import WatchedClient
from tests.cli.workers.workers_kit import WorkersRun
from tests.live.support import Log, caught_up, eventually
from tests.serving.http_kit import get, scrape
from tests.serving.promql_kit import OWN_SERIES, Query, labels, metrics, of_kafkas_clients, queries, variables

pytestmark = [pytest.mark.live, pytest.mark.slow]

RESTORE = "kafka_streams_stream_task_metrics_restore_remaining_records_total"
WORKERS = "pystreams_worker_restarts_total"
ASKED = frozenset().union(*(metrics(query.text) for query in queries())) - OWN_SERIES.keys()

#: The application of these tests has no clients of Kafka. Those on Kafka are looked at by
#: ``tests/kafka/applications/test_kafka_client_metrics.py``.
OF_CLIENTS = of_kafkas_clients()

#: What has not come within this time will not come.
PATIENCE_S = 60.0

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).to("out")
"""


class Seen(defaultdict[str, frozenset[str]]):
    """The labels that each metric was seen with."""

    def __init__(self) -> None:
        super().__init__(frozenset)

    def look(self, address: object) -> None:
        for sample in scrape(address).series:
            self[sample.name] |= sample.labels.keys()

    def wait_for(self, names: frozenset[str], *addresses: object) -> None:
        """Look until all of these were seen. What is missing in the end, the tests say."""

        def all_there() -> bool:
            for address in addresses:
                self.look(address)
            return names <= self.keys()

        with suppress(AssertionError):
            eventually(all_there, timeout_s=PATIENCE_S)


class Holding:
    """A listener that holds the restore up before its first record."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.go_on.wait(PATIENCE_S)

    def on_batch_restored(self, partition: TopicPartition, store: str, offset: int, records: int) -> None:
        """The first one was held up."""

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        """The first one was held up."""


def watched(log: Log, process: str) -> Streams:
    """A process that counts in windows of ten seconds and shows each result when its window has closed."""
    app = log.app(
        "watched",
        state_dir=log.path / process,
        commit_interval_ms=100,
        window_changelog_retention_ms=-1,
        num_standby_replicas=1,
        metrics_recording_level="DEBUG",
        processing_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    windows = TimeWindows.tumbling(timedelta(seconds=10), grace=timedelta(0))
    numbers = app.stream("in", key=str, value=int).map_values(lambda value: 100 // value, value=int)
    # Behind a topic of its own, so that the process watches how far the others are.
    counts = numbers.repartition().group_by_key().windowed_by(windows).count(name="counts")
    closed = counts.suppress(Suppressed.until_window_closes())
    closed.to_stream(lambda key, _: key.key, key=str).to("out")
    return Streams(app, broker=log.broker)


def look_at_two_processes(log: Log, seen: Seen) -> None:
    """Each has a task and the other's standby, and meets a late record and one that it cannot process."""
    for partition in (0, 1):
        log.write("in", [(str(n % 7), 1, 100 * n) for n in range(500)], partition=partition)
    with ExitStack() as stack:
        addresses, clients = [], []
        for process in ("one", "two"):
            streams = stack.enter_context(closing(watched(log, process)))
            server = HttpServer(Address.parse("127.0.0.1:0"), WatchedClient(streams, None))
            addresses.append(stack.enter_context(server).address)
            streams.start()
            clients.append(streams)
        for streams in clients:
            caught_up(streams)
        for partition in (0, 1):
            log.write("in", [("late", 1, 0), ("bad", 0, 50_000)], partition=partition)
        seen.wait_for(ASKED - {RESTORE, WORKERS} - OF_CLIENTS.keys(), *addresses)


def look_at_a_restore(log: Log, seen: Seen) -> None:
    for process in ("one", "two"):
        shutil.rmtree(log.path / process)
    holding = Holding()
    with closing(watched(log, "one")) as streams:
        streams.set_restore_listener(holding)
        with HttpServer(Address.parse("127.0.0.1:0"), WatchedClient(streams, None)) as server:
            streams.start()
            seen.wait_for(frozenset({RESTORE}), server.address)
            holding.go_on.set()
            caught_up(streams)


def look_at_workers(folder: Path, seen: Seen) -> None:
    (folder / "copying.py").write_text(COPYING, encoding="utf-8")
    run = WorkersRun(folder, "copying", "--workers", "2", "--http", "127.0.0.1:0")
    try:
        address = run.says(r"Metrics, health and stores are at http://(\S+):")[1]
        eventually(lambda: get(address, "/ready").status == 200)
        os.kill(run.all_there(2)[1], signal.SIGKILL)
        seen.wait_for(frozenset({WORKERS}), address)
        run.send(signal.SIGTERM)
        run.ends_with(0)
    finally:
        run.close()


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The metrics of applications that run, with their labels."""
    folder, seen = tmp_path_factory.mktemp("watched"), Seen()
    (folder / ".pystreams").mkdir()
    log = Log(folder / ".pystreams")
    try:
        log.create("in", "out", "dead", partitions=2)
        look_at_two_processes(log, seen)
        look_at_a_restore(log, seen)
        look_at_workers(folder, seen)
        yield seen
    finally:
        log.close()


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_a_query_asks_for_what_there_is_and_shows_labels_that_its_result_has(
    query: Query, known: Seen
) -> None:
    has = labels(query.text, {**OWN_SERIES, **OF_CLIENTS, **known})
    assert query.shown <= has, f"{query.where} shows {sorted(query.shown - has)}"


def test_the_dashboards_variables_are_labels_of_metrics_that_there_are(known: Seen) -> None:
    assert variables()
    for metric, label in variables():
        assert label in labels(metric, known)


@pytest.mark.parametrize(
    "query",
    [
        "sum(kafka_streams_no_such_metric)",
        'pystreams_tasks{task="0_0"}',
        "sum by (topic) (pystreams_tasks)",
        "pystreams_tasks / on (topic) pystreams_standbys",
        'label_replace(pystreams_tasks, "a", "$1", "topic", "(.*)")',
    ],
)
def test_a_query_for_what_there_is_not_is_found(query: str, known: Seen) -> None:
    with pytest.raises(AssertionError, match=r"no metric|no label|is no label"):
        labels(query, known)

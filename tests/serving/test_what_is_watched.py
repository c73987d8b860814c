"""Dashboard and alert rules ask for metrics and labels that a running application has: with tasks, standbys, restores,
late records, dead letters, and workers that die. The catalogue has exactly what such applications say, and a real
Prometheus that scrapes them has an answer for each panel."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from pystreams import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    Stores,
    Streams,
    Suppressed,
    TimeWindows,
)
from pystreams.ids import TopicPartition
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.watched import WatchedClient
from tests.cli.workers.workers_kit import WorkersRun
from tests.kafka.server import free_port
from tests.live.support import Log, caught_up, eventually
from tests.serving.http_kit import Scrape, get
from tests.serving.prometheus_kit import Prometheus
from tests.serving.promql_kit import (
    OWN_SERIES,
    Query,
    catalogue,
    labels,
    metrics,
    of_kafkas_clients,
    queries,
    variables,
)

pytestmark = [pytest.mark.live, pytest.mark.slow]

RUNS = "pystreams_rebalance_pause_max"
RESTORE = "kafka_streams_stream_task_metrics_restore_remaining_records_total"
WORKERS = "pystreams_worker_restarts_total"

#: The application of these tests has no clients of Kafka. Those on Kafka are looked at by
#: ``tests/kafka/applications/test_kafka_client_metrics.py``.
OF_CLIENTS = of_kafkas_clients()

#: What there is without them, and what of it there is at each recording level.
EXPECTED = catalogue().keys() - OF_CLIENTS.keys()
OF_LEVEL = {
    "DEBUG": EXPECTED,
    "INFO": {name for name in EXPECTED if not catalogue()[name].endswith("; level DEBUG")},
}
#: What needs a situation of its own, below.
LATER = {RESTORE, WORKERS}

#: Names that Prometheus would choose differently: gauges whose names end, as in Java, as those of counters or of
#: histograms do, and times in ms, the unit of all times in Java's metrics. ``RESTORE`` is one of them, too.
UNUSUAL = {
    "kafka_streams_stream_task_metrics_cache_size_bytes_total",
    "pystreams_cache_size_bytes_total",
    "pystreams_suppression_buffer_count",
    "pystreams_late_records_grace_needed_max_ms",
    "pystreams_late_records_lateness_max_ms",
    "pystreams_stream_time_ms",
}

#: What has not come within this time will not come.
PATIENCE_S = 60.0

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).to("out")
"""


class Seen(defaultdict[str, frozenset[str]]):
    """The labels that each metric was seen with. ``page`` is the last that was seen."""

    def __init__(self) -> None:
        super().__init__(frozenset)
        self.page = ""

    def look(self, address: object) -> None:
        self.page = get(address, "/metrics").text
        for sample in Scrape(self.page).series:
            self[sample.name] |= sample.labels.keys()


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


class Remembering(Processor[str, int, str, int]):
    """Does with its store whatever a program may do with it, and wakes up in between."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, lambda _: None)

    def process(self, record: Record[str, int]) -> None:
        store = self.context.store("remembered")
        store.put_if_absent(record.key, record.value)
        store.put_all([(record.key, record.value)])
        store.delete(record.key)


def watched(log: Log, process: str, level: str) -> Streams:
    """A process that counts in windows of ten seconds and shows each result when its window has closed. It also counts
    sessions, looks for rows that are not there, and has a processor."""
    app = log.app(
        "watched",
        state_dir=log.path / process,
        state_snapshot_dir=log.path / "snapshots",
        commit_interval_ms=100,
        window_changelog_retention_ms=-1,
        num_standby_replicas=1,
        metrics_recording_level=level,
        processing_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    windows = TimeWindows.tumbling(timedelta(seconds=10), grace=timedelta(0))
    numbers = app.stream("in", key=str, value=int).map_values(lambda value: 100 // value, value=int)
    numbers.join(app.table("rows", key=str, value=int), lambda number, row: number + row)
    # Behind a topic of its own, so that the process watches how far the others are.
    spread = numbers.repartition()
    counts = spread.group_by_key().windowed_by(windows).count(name="counts")
    closed = counts.suppress(Suppressed.until_window_closes())
    closed.to_stream(lambda key, _: key.key, key=str).to("out")
    spread.group_by_key().windowed_by(SessionWindows.of(timedelta(seconds=1))).count(name="sessions")
    spread.process(Remembering, stores=Stores.key_value_store("remembered", str, int))
    return Streams(app, broker=log.broker)


class Watching(NamedTuple):
    """What looks at the applications: ``seen`` by recording level, and Prometheus, if it is installed. Each application
    listens at a port of its own, which Prometheus knows from the beginning."""

    seen: Mapping[str, Seen]
    ports: Iterator[int]
    prometheus: Prometheus | None

    def address(self) -> Address:
        return Address.parse(f"127.0.0.1:{next(self.ports)}")

    def scrape_twice(self, *addresses: object) -> None:
        for address in addresses:
            if self.prometheus is not None:
                self.prometheus.scrape_twice(address)

    def wait_for(self, names: AbstractSet[str], addresses: Mapping[str, object]) -> None:
        """Look at these addresses, by recording level, until these names were seen, where the level has them. What is
        missing in the end, the tests say."""

        def all_there() -> bool:
            for level, address in addresses.items():
                self.seen[level].look(address)
            return all(names & OF_LEVEL[level] <= self.seen[level].keys() for level in addresses)

        with suppress(AssertionError):
            eventually(all_there, timeout_s=PATIENCE_S)


def look_at_two_processes(log: Log, watching: Watching) -> None:
    """Each has a task and the other's standby, and meets late records and one that it cannot process."""
    for partition in (0, 1):
        log.write("in", [(str(n % 7), 1, 100 * n) for n in range(500)], partition=partition)
    with ExitStack() as stack:
        addresses, clients = {}, []
        for process, level in (("one", "DEBUG"), ("two", "INFO")):
            streams = stack.enter_context(closing(watched(log, process, level)))
            server = HttpServer(watching.address(), WatchedClient(streams, None))
            addresses[level] = stack.enter_context(server).address
            streams.start()
            clients.append(streams)
        for streams in clients:
            caught_up(streams)
        # Averages and maxima are those of the last minute.
        watching.wait_for({RUNS}, addresses)
        watching.scrape_twice(*addresses.values())
        for partition in (0, 1):
            late, new = ([(str(n), 1, time_ms) for n in range(7)] for time_ms in (0, 60_000))
            log.write("in", [*late, ("bad", 0, 50_000), *new], partition=partition)
        watching.wait_for(EXPECTED - LATER, addresses)
        watching.scrape_twice(*addresses.values())


def look_at_a_restore(log: Log, watching: Watching) -> None:
    for folder in ("one", "two", "snapshots"):
        shutil.rmtree(log.path / folder, ignore_errors=True)
    holding = Holding()
    with closing(watched(log, "one", "INFO")) as streams:
        streams.set_restore_listener(holding)
        with HttpServer(watching.address(), WatchedClient(streams, None)) as server:
            streams.start()
            watching.wait_for({RESTORE}, {"INFO": server.address})
            watching.scrape_twice(server.address)
            holding.go_on.set()
            caught_up(streams)


def look_at_workers(folder: Path, watching: Watching) -> None:
    (folder / "copying.py").write_text(COPYING, encoding="utf-8")
    run = WorkersRun(folder, "copying", "--workers", "2", "--http", str(watching.address()))
    try:
        address = run.says(r"Metrics, health and stores are at http://(\S+):")[1]
        eventually(lambda: get(address, "/ready").status == 200)
        os.kill(run.all_there(2)[1], signal.SIGKILL)
        watching.wait_for({WORKERS}, {"INFO": address})
        watching.scrape_twice(address)
        run.send(signal.SIGTERM)
        run.ends_with(0)
    finally:
        run.close()


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    """What has looked at applications that ran."""
    folder, program = tmp_path_factory.mktemp("watched"), shutil.which("prometheus")
    (folder / ".pystreams").mkdir()
    ports = [free_port() for _ in range(4)]
    with ExitStack() as stack:
        prometheus = None
        if program is not None:
            addresses = [f"127.0.0.1:{port}" for port in ports]
            prometheus = stack.enter_context(Prometheus(program, folder, addresses))
        found = Watching({"DEBUG": Seen(), "INFO": Seen()}, iter(ports), prometheus)
        log = stack.enter_context(closing(Log(folder / ".pystreams")))
        log.create("in", "out", "dead", "rows", partitions=2)
        look_at_two_processes(log, found)
        look_at_a_restore(log, found)
        look_at_workers(folder, found)
        yield found


@pytest.fixture(scope="module")
def known(watching: Watching) -> Mapping[str, frozenset[str]]:
    """The metrics of applications that run, with their labels."""
    debug, info = watching.seen["DEBUG"], watching.seen["INFO"]
    nothing: frozenset[str] = frozenset()
    return {name: debug.get(name, nothing) | info.get(name, nothing) for name in debug.keys() | info.keys()}


@pytest.fixture
def prometheus(watching: Watching) -> Prometheus:
    if watching.prometheus is None:
        pytest.skip("prometheus is not installed")
    return watching.prometheus


def test_applications_have_the_metrics_of_the_catalogue_and_no_others(
    known: Mapping[str, frozenset[str]],
) -> None:
    assert known.keys() == EXPECTED


def test_the_recording_level_info_leaves_out_exactly_what_the_catalogue_says(watching: Watching) -> None:
    assert watching.seen["INFO"].keys() == OF_LEVEL["INFO"]


def test_prometheus_objects_to_names_only_that_are_meant(watching: Watching) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, a part of Prometheus, is not installed")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=watching.seen["DEBUG"].page,
        capture_output=True,
        text=True,
        check=False,
    )
    assert {line.split(" ")[0] for line in done.stderr.splitlines()} - {RESTORE} == UNUSUAL


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_prometheus_has_an_answer_for_each_panel_and_can_evaluate_each_alert(
    query: Query, prometheus: Prometheus
) -> None:
    # Panels that show 0 for nothing have to find something, too.
    series = prometheus.ask(query.text.removesuffix(" or vector(0)"))
    # Not all of them: before its start a client has no id.
    assert not series or any(query.shown <= one["metric"].keys() for one in series)
    # A share is no number for a cache that nobody writes to.
    numbers = [float(value) for one in series for _, value in one["values"] if math.isfinite(float(value))]
    if query.where.startswith("panel "):
        # Those without an answer are about clients of Kafka, which these applications do not have.
        assert bool(numbers) == OF_CLIENTS.keys().isdisjoint(metrics(query.text))


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_a_query_asks_for_what_there_is_and_shows_labels_that_its_result_has(
    query: Query, known: Mapping[str, frozenset[str]]
) -> None:
    has = labels(query.text, {**OWN_SERIES, **OF_CLIENTS, **known})
    assert query.shown <= has, f"{query.where} shows {sorted(query.shown - has)}"


def test_the_dashboards_variables_are_labels_of_metrics_that_there_are(
    known: Mapping[str, frozenset[str]],
) -> None:
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
def test_a_query_for_what_there_is_not_is_found(query: str, known: Mapping[str, frozenset[str]]) -> None:
    with pytest.raises(AssertionError, match=r"no metric|no label|is no label"):
        labels(query, known)

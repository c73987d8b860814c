"""``pystreams run --otel`` sends to a collector, with workers from each of them, and says what is missing for it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import WorkersRun
from tests.live.support import Log, eventually

pytestmark = pytest.mark.live

PROCESSED = "kafka_streams_stream_task_metrics_process_total"
COUNT = "messaging.batch.message_count"
INSTANCE = "service.instance.id"

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).to("out")
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """The log that commands find in the folder, and the program beside it."""
    (tmp_path / ".pystreams").mkdir()
    (tmp_path / "copying.py").write_text(COPYING, encoding="utf-8")
    log = Log(tmp_path / ".pystreams")
    log.create("in", "out", partitions=4)
    write(log)
    yield log
    log.close()


def write(log: Log) -> None:
    for partition in range(4):
        log.write("in", [(str(n), n, n) for n in range(10)], partition=partition)


@pytest.fixture
def start(tmp_path: Path, log):
    runs: list[WorkersRun] = []

    def start(*arguments: str, **environment: str) -> WorkersRun:
        runs.append(WorkersRun(tmp_path, "copying", *arguments, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def test_an_application_sends_its_metrics(start, collector):
    run = start("--otel", "--until-caught-up", **collector.environment)
    run.ends_with(0)
    assert collector.total(PROCESSED) == 40
    assert sum(span.attributes[COUNT] for span in collector.spans) == 40
    assert {sent.resource["service.name"] for sent in collector.points + collector.spans} == {"copying"}


@pytest.mark.slow
def test_each_worker_sends_for_itself_and_the_one_that_is_started_again_too(start, collector, log):
    run = start("--otel", "--workers", "2", **collector.environment)
    eventually(lambda: [point.value for point in collector.latest("pystreams_tasks")] == [2, 2])
    instances = {point.resource[INSTANCE] for point in collector.latest("pystreams_tasks")}
    assert len(instances) == 2
    write(log)
    eventually(lambda: sum(span.attributes[COUNT] for span in collector.spans) == 80)
    eventually(lambda: collector.total(PROCESSED) == 80)
    assert {span.resource[INSTANCE] for span in collector.spans} == instances
    os.kill(run.all_there(2)[1], signal.SIGKILL)
    eventually(lambda: len({point.resource[INSTANCE] for point in collector.points}) == 3)
    run.send(signal.SIGTERM)
    run.ends_with(0)


def test_without_the_option_nothing_is_sent_and_nothing_of_opentelemetry_is_loaded(
    start, collector, tmp_path
):
    (tmp_path / "opentelemetry.py").write_text("raise ImportError('not to be loaded')", encoding="utf-8")
    run = start("--until-caught-up", **collector.environment)
    run.ends_with(0)
    assert not collector.requests


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_without_the_libraries_the_run_says_what_to_install(start, tmp_path, workers):
    (tmp_path / "opentelemetry.py").write_text("raise ImportError('no such module')", encoding="utf-8")
    run = start("--otel", *workers)
    run.ends_with(2)
    assert "pip install 'pystreams-engine[otel]'" in run.text
    assert "Traceback" not in run.text


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTLP is sent as http/protobuf only"),
        ("OTEL_METRICS_EXPORTER", "console", "set it to otlp or none"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "-1", "OpenTelemetry refuses the value of a variable"),
    ],
)
def test_variables_that_cannot_be_followed_end_the_run_before_it_begins(start, variable, value, words):
    run = start("--otel", **{variable: value})
    run.ends_with(2)
    assert words in " ".join(run.text.split())
    assert "Traceback" not in run.text


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_collector_that_never_answers_costs_one_warning_of_each_kind_and_five_seconds_at_the_end(
    start, workers
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = start(
            "--otel",
            "--until-caught-up",
            *(["--workers", str(workers)] if workers else []),
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}",
            OTEL_EXPORTER_OTLP_TIMEOUT="3600",
            OTEL_METRIC_EXPORT_INTERVAL="100",
            OTEL_TRACES_SAMPLER="always_on",
        )
        run.ends_with(0)
    assert "all is committed: 40 records" in run.text
    # A worker may come too late for the records, and even for its first metrics: all is over then.
    for kind in ("metrics", "traces"):
        assert 1 <= run.text.count(f"{kind} for OpenTelemetry are lost") <= max(1, workers)
    assert "opentelemetry.sdk" not in run.text
    assert "Traceback" not in run.text

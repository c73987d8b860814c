"""``pystreams run --http``: the pages are there while the application runs, with workers at one address for all."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from pystreams import App
from pystreams.serving.stores.asking import QUERY_S
from pystreams.topology.fingerprint import shape
from tests.cli.workers.workers_kit import WorkersRun
from tests.environment import without
from tests.linux import listening
from tests.live.support import Log, eventually, freeze
from tests.serving.http_kit import get, scrape

TASKS = "kafka_streams_stream_task_metrics"

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).to("out")
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    """The log that commands find in the folder, and the program beside it."""
    without(monkeypatch, "PYSTREAMS_", "NOTIFY_", "WATCHDOG_")
    (tmp_path / ".pystreams").mkdir()
    (tmp_path / "copying.py").write_text(COPYING, encoding="utf-8")
    log = Log(tmp_path / ".pystreams")
    log.create("in", "out", partitions=4)
    yield log
    log.close()


class Run(WorkersRun):
    """A run that serves pages."""

    @property
    def address(self) -> str:
        """Where they are, once the run has said so."""
        return self.says(r"Metrics, health and stores are at http://(\S+):")[1]


@pytest.fixture
def start(tmp_path: Path):
    runs: list[Run] = []

    def start(*arguments: str, **environment: str) -> Run:
        runs.append(Run(tmp_path, "copying", *arguments, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def write(log: Log, records: int) -> None:
    for partition in range(4):
        log.write("in", [(str(n), n, n) for n in range(records)], partition=partition)


def check_topology(run: Run) -> None:
    """The run shows what runs, as ``describe`` and ``diff`` know it."""
    app = App("copying")
    app.stream("in", key=str, value=int).to("out")
    built = app.build().build("copying")
    shown = get(run.address, "/topology").json
    assert shown["topology"] == shape(built)
    assert (shown["application_id"], shown["fingerprint"]) == ("copying", built.fingerprint)
    assert shown["guarantee"] == "exactly once"
    assert "picture" not in shown


def test_an_application_shows_its_metrics_and_health_until_it_is_stopped(log, start):
    write(log, 10)
    run = start("--http", "0", "--ready-lag", "0")
    eventually(lambda: get(run.address, "/ready").status == 200)
    assert get(run.address, "/live").status == 200
    assert scrape(run.address).total(f"{TASKS}_process_total") == 40
    assert len(listening(run.process.pid)) == 1
    page = f"http://{run.address}/"
    assert f"The live page, for a browser, is at {page}." in run.text
    assert get(run.address, "/").text.splitlines() == [
        f"the live page, for a browser: {page}",
        "/metrics",
        "/live",
        "/ready",
        "/lag",
        "/threads",
        "/stores",
        "/state",
        "/events",
        "/topology",
    ]
    check_topology(run)
    run.send(signal.SIGTERM)
    run.ends_with(0)
    assert "all is committed: 40 records" in run.text


@pytest.mark.slow
def test_workers_share_one_address_and_a_killed_one_shows(log, start):
    write(log, 10)
    run = start("--workers", "2", "--http", "127.0.0.1:0")
    eventually(lambda: get(run.address, "/ready").status == 200)
    eventually(lambda: scrape(run.address).total(f"{TASKS}_process_total") == 40)
    eventually(lambda: len(scrape(run.address).labels("pystreams_tasks")) == 2)
    check_topology(run)
    os.kill(run.all_there(2)[1], signal.SIGKILL)
    eventually(
        lambda: any(reason.startswith("worker 1: ") for reason in get(run.address, "/ready").json["reasons"])
    )
    assert get(run.address, "/live").status == 200
    eventually(lambda: scrape(run.address).total("pystreams_worker_restarts_total", worker="1") == 1)
    eventually(lambda: get(run.address, "/ready").status == 200)
    run.send(signal.SIGTERM)
    run.ends_with(0)


COUNTING = """
from pystreams import App

app = App("counting", poll_ms=10)
app.stream("in", key=str, value=int).group_by_key().count(name="counts")
"""


@pytest.mark.slow
def test_one_address_answers_for_the_stores_of_all_workers(log, start, tmp_path):
    (tmp_path / "copying.py").write_text(COUNTING, encoding="utf-8")
    keys = [str(n) for n in range(20)]
    for number, key in enumerate(keys):
        log.write("in", [(key, 1, number)], partition=number % 4)
    run = start("--workers", "2", "--http", "127.0.0.1:0")
    eventually(lambda: get(run.address, "/ready").status == 200)
    eventually(lambda: get(run.address, "/stores/counts").json["here"] == [0, 1, 2, 3])
    eventually(lambda: len(get(run.address, "/stores/counts/entries").json.get("entries", ())) == 20)
    named = eventually(lambda: get(run.address, "/stores").headers.get("pystreams-application"), "its name")
    assert named == get(run.address, "/state").json["clients"][0]["client_id"].partition("-")[0]
    for _ in range(2):  # the second time it is known who has a key
        for number, key in enumerate(keys):
            assert get(run.address, f"/stores/counts/keys/{key}").json == {
                "key": key,
                "value": 1,
                "timestamp": number,
            }
    page = get(run.address, "/stores/counts/entries?limit=7").json
    rest = get(run.address, f"/stores/counts/entries?cursor={page['cursor']}").json
    assert [entry["key"] for entry in page["entries"] + rest["entries"]] == sorted(keys)
    assert get(run.address, "/stores/counts/keys/nobody").json["code"] == "absent"
    assert get(run.address, "/stores/count").json["hint"] == "did you mean counts?"
    os.kill(run.all_there(2)[1], signal.SIGKILL)
    seen = [get(run.address, "/stores/counts/keys/0") for _ in range(20)]
    assert {page.status for page in seen} <= {200, 503}
    eventually(lambda: all(get(run.address, f"/stores/counts/keys/{key}").status == 200 for key in keys))
    run.send(signal.SIGTERM)
    run.ends_with(0)


def position_of(records: int) -> str:
    return quote(json.dumps({"in": {"0": records}}))


@pytest.mark.slow
def test_each_commit_of_a_worker_shows_in_the_next_answer(log, start, tmp_path):
    (tmp_path / "copying.py").write_text(COUNTING, encoding="utf-8")
    run = start("--workers", "1", "--http", "127.0.0.1:0", "--set", "commit_interval_ms=50")
    committed = "/stores/counts/keys/a?freshness=committed"
    eventually(lambda: get(run.address, committed).status == 404)
    for count in range(1, 20):
        log.write("in", [("a", 1, count)], partition=0)
        # Whoever demands the position of this record waits for the commit, and always asks the worker.
        assert get(run.address, f"{committed}&position={position_of(count)}").json["value"] == count
        # Others get what the supervisor has from the time before, unless it knows of the commit.
        for _ in range(3):
            assert get(run.address, committed).json["value"] == count
    run.send(signal.SIGTERM)
    run.ends_with(0)


@pytest.mark.slow
def test_nobody_waits_for_a_worker_that_stands_still(log, start, tmp_path):
    (tmp_path / "copying.py").write_text(COUNTING, encoding="utf-8")
    log.write("in", [("a", 1, 1)], partition=0)
    run = start("--workers", "1", "--http", "127.0.0.1:0")
    key = "/stores/counts/keys/a"
    eventually(lambda: get(run.address, key).status == 200)
    # Until its first report, a worker is taken for one whose program is slow to import.
    eventually(lambda: get(run.address, "/ready").status == 200)
    worker = run.all_there(1)[1]
    freeze(worker)
    try:
        eventually(lambda: "it has not reported" in str(get(run.address, "/ready").json["reasons"]))
        began = time.monotonic()
        page = get(run.address, f"{key}?freshness=committed")
        assert time.monotonic() - began < QUERY_S / 2
        assert (page.status, page.json["error"]) == (503, "worker 1 does not answer")
        assert "it has not reported for" in page.json["why"]
    finally:
        os.kill(worker, signal.SIGCONT)
    eventually(lambda: get(run.address, key).status == 200)
    run.send(signal.SIGTERM)
    run.ends_with(0)


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_an_address_that_is_taken_ends_the_run_before_it_begins(log, start, workers):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = start("--http", str(port), *workers)
        run.ends_with(2)
    assert f"nothing can listen on 127.0.0.1:{port}" in run.text
    assert "Traceback" not in run.text


def test_what_is_no_address_is_refused_before_anything_is_created(log, start):
    run = start("--http", "localhost", "--create-topics")
    run.ends_with(2)
    assert "'localhost' is not an address to listen on" in run.text
    assert "HOST:PORT" in run.text
    assert "Created" not in run.text
    assert "Traceback" not in run.text


def test_an_address_for_all_is_said_to_be_one(log, start):
    run = start("--http", "0.0.0.0:0", "--until-caught-up")
    run.ends_with(0)
    assert "/stores; stores only with --http-token-file or --http-open" in run.text


def test_without_the_libraries_the_run_says_what_to_install(log, start, tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('no module named uvicorn')", encoding="utf-8")
    run = start("--http", "0")
    run.ends_with(2)
    assert "pip install 'pystreams-engine[http]'" in run.text
    assert "or from a clone: pip install '/path/to/the/clone[http]'" in run.text
    assert "Traceback" not in run.text


def test_nothing_of_a_web_server_is_loaded_where_nobody_asks_for_it(log, start, tmp_path):
    for library in ("uvicorn", "starlette", "prometheus_client"):
        (tmp_path / f"{library}.py").write_text("raise ImportError('not to be loaded')", encoding="utf-8")
    run = start("--until-caught-up")
    run.ends_with(0)

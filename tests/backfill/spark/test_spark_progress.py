"""While tasks run, the driver hears how many records they have processed, of how many."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.driver import Planned, Progress, run
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.progress import Reporter, addresses_of, listening
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count
from tests.live.support import eventually


def test_the_driver_hears_of_every_task(tmp_path: Path, executor: SparkExecutor) -> None:
    backfill = Backfill(
        word_count(), memory(history("word count", 5, 2)), tmp_path / "spark", executor=executor
    )
    planned = Planned(
        backfill.loaded, backfill.application, backfill.plan, backfill.manifest, backfill.source
    )
    heard: list[Progress] = []
    result = run(planned, executor, str(tmp_path / "spark"), progress=heard.append)
    last = {(one.slice, one.task): one for one in heard if one.finished}
    assert set(last) == {(slice, task) for slice in (0, 1) for task in (0, 1)}
    for (slice, task), one in last.items():
        assert one.records == one.expected == result.outcome(result.plan.slices[slice], task).records


def test_reports_of_others_are_not_heard() -> None:
    heard: list[tuple[int, int, bool]] = []
    with listening("127.0.0.1", "127.0.0.1", lambda *told: heard.append(told)) as reporter:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            assert reporter.address is not None
            stranger.sendto(bytes(29), reporter.address)
            stranger.sendto(b"", reporter.address)
        task = reporter.of(3)
        task.processed(7)
        task.finished()
        eventually(lambda: heard == [(3, 7, True)])
    assert "token" not in repr(reporter)


class Context:
    """A driver's ``SparkContext``, as far as its addresses go."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master = master
        self._conf = {name.replace("_", "."): value for name, value in conf.items()}

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return self._conf


@pytest.mark.parametrize(
    "context,addresses",
    [
        (Context("local[2]", spark_driver_host="my-laptop"), ("127.0.0.1", "127.0.0.1")),
        (Context("spark://host:7077", spark_driver_host="10.0.0.1"), ("10.0.0.1", "10.0.0.1")),
        (
            Context("k8s://host", spark_driver_host="driver-svc.ns.svc", spark_driver_bindAddress="10.1.2.3"),
            ("10.1.2.3", "driver-svc.ns.svc"),
        ),
        (Context("yarn", spark_driver_host="[fd00::1]"), ("fd00::1", "fd00::1")),
    ],
    ids=["local", "cluster", "Kubernetes", "IPv6"],
)
def test_the_driver_listens_where_it_is_and_is_reached_by_the_name_that_workers_know(
    context: Any, addresses: tuple[str, str]
) -> None:
    assert addresses_of(context) == addresses


def test_it_is_reached_under_another_name_than_it_listens_at() -> None:
    heard: list[tuple[int, int, bool]] = []
    with listening("0.0.0.0", "localhost", lambda *told: heard.append(told)) as reporter:
        assert reporter.address is not None
        assert reporter.address[0] == "localhost"
        reporter.of(1).finished()
        eventually(lambda: heard == [(1, 0, True)])


def test_without_an_address_to_listen_at_it_goes_on_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Of the range for documentation: no machine has it.
    for _ in range(2):
        with listening("192.0.2.1", "driver-service", lambda *_: None) as reporter:
            assert reporter.address is None
            task = reporter.of(0)
            task.processed(7)
            task.finished()
    assert caplog.text.count("no live progress") == 1
    assert "192.0.2.1" in caplog.text


def test_a_driver_that_no_worker_finds_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unknown(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    task = Reporter(("driver-service", 1), b"token").of(0)
    for _ in range(3):
        task.finished()
    assert asked == ["driver-service"]


def test_the_end_waits_for_no_datagram(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that tells the end may be lost: then nobody must wait for it."""
    monkeypatch.setattr(socket.socket, "sendto", lambda *_: 0)
    with listening("127.0.0.1", "127.0.0.1", lambda *_: None):
        pass

"""Supervisor and worker talk over a pair of sockets: reports may be left out, what matters never is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from pystreams import App, Streams
from pystreams.cli.commands.workers.channel import Channel, Message
from pystreams.cli.commands.workers.worker_program import Reporter
from pystreams.metrics import Metrics, Sample
from pystreams.runtime.supervisor.worker import Failure, Measured, Report
from tests.live.support import eventually


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """The supervisor's, which does not block, and the worker's."""
    first, second = socket.socketpair()
    first.setblocking(False)
    supervisor, worker = Channel(first), Channel(second)
    yield supervisor, worker
    for end in (supervisor, worker):
        end.close()


def drain(end: Channel) -> list[Message]:
    messages: list[Message] = []
    while arrived := end.read():
        messages += arrived
    return messages


def test_reports_that_nobody_reads_are_left_out_and_the_failure_is_not(ends):
    supervisor, worker = ends
    sent = 0
    while worker.send(Report("running", records=sent)):
        sent += 1
    failure = Failure("raised ValueError")
    sending = threading.Thread(target=worker.send, args=(failure,), kwargs={"timeout_s": None})
    sending.start()
    read: list[Message] = []
    while failure not in read:
        read += drain(supervisor)
    sending.join()
    assert read == [*(Report("running", records=number) for number in range(sent)), failure]


def test_metrics_arrive_as_they_were_whatever_a_program_has_set(ends):
    supervisor, worker = ends
    metrics = Metrics()
    for name, value in (("a", 3), ("b", 0.5), ("nan", float("nan")), ("true", True), ("large", 10**30)):
        metrics.gauge(name, path="\udcff").set(value)
    measured = Measured("shop", "client", metrics.snapshot())
    assert worker.send(measured)
    assert drain(supervisor) == [measured]
    assert {sample.name for sample in measured.samples} == {"a", "b", "true", "large"}


def test_nobody_waits_for_a_supervisor_that_is_gone(ends):
    supervisor, worker = ends
    while worker.send(Report("running")):
        pass
    supervisor.close()
    assert not worker.send(Failure("raised ValueError"), timeout_s=None)


def test_metrics_that_do_not_fit_into_the_buffer_hold_nobody_up_and_arrive_whole(ends):
    supervisor, worker = ends
    measured = Measured(
        "shop", "client", [Sample(f"metric-{number}", (), number) for number in range(50_000)]
    )
    sending = threading.Thread(target=worker.send, args=(measured,))
    sending.start()
    sending.join(60)
    assert not sending.is_alive()
    assert not worker.send(Report("running", records=1)), "the rest of the metrics comes before it"
    read: list[Message] = []
    while measured not in read:
        read += drain(supervisor)
        worker.send(Report("running", records=2))
    assert worker.send(Report("running", records=3))
    read += drain(supervisor)
    assert read[0] == measured
    assert all(message == Report("running", records=2) for message in read[1:-1])
    assert read[-1] == Report("running", records=3)


def test_metrics_that_cannot_be_had_cost_no_report(ends, caplog):
    supervisor, worker = ends
    app = App("copying")
    app.stream("in", key=str, value=int).to("out")
    streams = Streams(app)
    streams.metrics.attach(lambda: [Sample("odd", (), 1 / 0)])
    reporter = Reporter(worker, streams, until_caught_up=False, measured=True)
    reporter(streams.progress())
    read: list[Message] = []
    eventually(lambda: read.extend(drain(supervisor)) or len(read) > 2)
    reporter.end()
    assert {type(message) for message in [*read, *drain(supervisor)]} == {Report}
    assert "ZeroDivisionError" in caplog.text

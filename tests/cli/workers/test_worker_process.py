"""A supervisor hears what a worker's process says, to its end and no further."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

import pytest

from pystreams.cli.commands.workers.channel import (
    Channel,
    Job,
    LookRequest,
    Message,
    StacksRequest,
    StopRequest,
    ThreadsRequest,
)
from pystreams.cli.commands.workers.living import REPEAT_MS, LivingWorker
from pystreams.cli.commands.workers.process import WorkerProcess
from pystreams.cli.commands.workers.supervisor import Supervisor, WatchedWorkers
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr, take_down_logs
from pystreams.clock import ManualClock
from pystreams.metrics import Sample
from pystreams.runtime.health import Health
from pystreams.runtime.supervisor.supervision import Report, Supervision
from pystreams.runtime.supervisor.worker import Measured
from pystreams.serving.live.look import ClientLook
from pystreams.serving.threads import ClientThreads


class Endless:
    """A pipe that a child of the worker goes on writing into: there is always something to read."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.send(b"y")

    def fileno(self) -> int:
        return self._ours.fileno()

    def read(self) -> list[str]:
        return []

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


class DeadProcess:
    """A worker that has died with exit code 7, and left children."""

    def __init__(self, _application: str, number: int) -> None:
        self.number = number
        self.last_lines: list[str] = []
        self.channel, self.output, self.log = Endless(), Endless(), Endless()
        self.questions, self._answers = socket.socketpair()
        self.ended_answers = mock.Mock()
        self.pid = 0

    def begin(self, job: Job) -> None:
        assert job.number == self.number

    def exit_code(self) -> int:
        return 7

    def close(self) -> None:
        for opened in (self.channel, self.output, self.log, self._answers):
            opened.close()


@pytest.fixture
def processes() -> Iterator[None]:
    with mock.patch("pystreams.cli.commands.workers.supervisor.WorkerProcess", DeadProcess):
        yield


def test_a_worker_that_dies_is_buried_even_if_its_children_go_on_writing(processes, capsys):
    supervision = Supervision(1, ManualClock())
    job = Job("words", 1, {}, [], until_caught_up=False, logs=LogOptions())
    log_to_stderr(LogOptions())
    with Supervisor(supervision, {1: job}, ManualClock()) as supervisor:
        stop = mock.Mock(is_set=lambda: supervision.workers[1].failures > 0)
        supervisor.run(stop, lambda: None)
    assert supervision.over
    take_down_logs()
    assert "worker 1 ended with exit code 7" in capsys.readouterr().err


@contextmanager
def process_that_does_not_read() -> Iterator[tuple[WorkerProcess, Channel]]:
    """A worker's process, and its end of the channel, which holds its job."""
    ends: list[Channel] = []

    def popen(_application: str, _number: int, channel: int, _questions: int, _memory: int) -> mock.Mock:
        ends.append(Channel(socket.socket(fileno=os.dup(channel))))
        return mock.Mock(stdout=Path(os.devnull).open("rb"), stderr=Path(os.devnull).open("rb"))

    with mock.patch("pystreams.cli.commands.workers.process._popen", popen):
        process = WorkerProcess("words", 1)
        process.begin(Job("words", 1, {}, [], until_caught_up=False, logs=LogOptions()))
    with closing(process), closing(process.questions), closing(ends[0]):
        ends[0].socket.setblocking(False)
        yield process, ends[0]


def read_to_the_end(process: WorkerProcess, worker: Channel) -> list[Message]:
    """All that the worker reads now, and what the supervisor sends meanwhile; without the job."""
    heard: list[Message] = []
    while arrived := worker.read():
        heard += arrived
        process.tick()
    return heard[1:]


def test_a_stop_reaches_a_worker_that_did_not_read_when_it_was_asked():
    with process_that_does_not_read() as (process, worker):
        sent = 0
        while process.channel.send(StacksRequest()):
            sent += 1
        process.stop()
        assert read_to_the_end(process, worker) == [*[StacksRequest()] * sent, StopRequest()]


def test_the_rest_of_a_message_that_did_not_fit_is_sent_though_none_follows():
    with process_that_does_not_read() as (process, worker):
        message = Job("words", 1, {"large": "x" * 1_000_000}, [], until_caught_up=False, logs=LogOptions())
        assert process.channel.send(message)
        heard: list[Message] = []
        for _ in range(1_000):
            heard += worker.read() or []
            process.tick()
        assert heard[1:] == [message]


class Asked:
    """The process of a worker that answers requests at once, as long as it has an ``answer``."""

    def __init__(self, supervisor: Supervisor, number: int) -> None:
        self.number = number
        self.requests: list[Message] = []
        self.answer: Message | None = None
        self.questions, self.ended_answers = mock.Mock(), mock.Mock()
        self.channel = mock.Mock(send=self._send)
        self.close = mock.Mock()
        self.pid = 1_000 + number
        self._supervisor = supervisor

    def _send(self, request: Message) -> bool:
        self.requests.append(request)
        if self.answer is not None:
            self._supervisor._hear(self._supervisor._living[self.number], self.answer)
        return True


def supervised(
    monkeypatch: pytest.MonkeyPatch, clock: ManualClock, count: int, *, first: int = 1
) -> tuple[Supervisor, list[Asked]]:
    """A supervisor that waits for no answer, and its workers, which have started from the ``first`` on."""
    monkeypatch.setattr("pystreams.cli.commands.workers.supervisor._LOOK_S", 0.0)
    supervision = Supervision(count, clock)
    supervision.begin()
    supervisor = Supervisor(supervision, {}, clock)
    processes = [Asked(supervisor, number) for number in range(1, count + 1)]
    for process in processes:
        supervisor._living[process.number] = LivingWorker(process)
        if process.number >= first:
            supervision.heard(process.number, Report("running", records=0, lag=0, tasks=1))
    return supervisor, processes


def look_at(number: int, at_ms: int) -> ClientLook:
    return ClientLook(
        f"client-{number}", number, at_ms, 0, "running", Health(True, True, ()), 0, [], 0, [], [], {}, [], []
    )


def test_the_log_is_asked_about_the_group_by_one_of_the_workers_and_only_for_those_who_want_it(monkeypatch):
    supervisor, processes = supervised(monkeypatch, ManualClock(), 3, first=2)
    for process in processes:
        process.answer = look_at(process.number, 0)
    supervisor.looks(with_group=True)
    supervisor.looks(with_group=False)
    asked = [[request.with_group for request in process.requests] for process in processes]
    assert asked == [[], [True, False], [False, False]]


def test_a_worker_that_dies_while_it_is_asked_is_not_shown_as_it_was(monkeypatch):
    supervisor, (dying,) = supervised(monkeypatch, ManualClock(), 1)
    dying.answer = look_at(1, 0)
    assert supervisor.looks(with_group=False) == {1: dying.answer}
    dying.channel.send = lambda _: supervisor._bury(supervisor._living[1])
    assert supervisor.looks(with_group=False) == {}


def test_a_worker_that_does_not_answer_is_not_the_one_that_asks_the_log(monkeypatch):
    supervisor, (frozen, other) = supervised(monkeypatch, ManualClock(), 2)
    other.answer = look_at(2, 0)
    for _ in range(2):
        supervisor.looks(with_group=True)
    assert frozen.requests == [LookRequest(with_group=True)]
    assert other.requests == [LookRequest(with_group=False), LookRequest(with_group=True)]


def test_a_worker_that_does_not_answer_gets_no_more_requests_until_some_time_has_passed(monkeypatch):
    clock = ManualClock()
    supervisor, (frozen,) = supervised(monkeypatch, clock, 1)
    for _ in range(100):
        supervisor.looks(with_group=True)
        supervisor.threads()
    assert frozen.requests == [LookRequest(with_group=True), ThreadsRequest()]
    clock.advance_ms(int(REPEAT_MS))
    supervisor.threads()
    assert frozen.requests[2:] == [ThreadsRequest()]


def test_the_threads_of_a_worker_that_does_not_answer_any_more_are_not_shown_as_they_were(monkeypatch):
    clock = ManualClock()
    supervisor, (one, other) = supervised(monkeypatch, clock, 2)
    watched = WatchedWorkers(supervisor, None, clock)
    one.answer, other.answer = (ClientThreads(f"client-{number}", 0, []) for number in (1, 2))
    assert [client.client_id for client in watched.threads()] == ["client-1", "client-2"]
    one.answer, other.answer = None, ClientThreads("client-2", 1, [])
    assert list(watched.threads()) == [other.answer]


def test_the_page_shows_that_a_worker_has_not_answered_for_some_seconds(monkeypatch):
    clock = ManualClock()
    supervisor, (one, other) = supervised(monkeypatch, clock, 2)
    watched = WatchedWorkers(supervisor, None, clock)

    def seen() -> tuple[list[str], list[str]]:
        other.answer = look_at(2, clock.now_ms())
        look = watched.look(with_group=False)
        return [client.client_id for client in look.clients], [worker.state for worker in look.workers]

    one.answer = look_at(1, clock.now_ms())
    assert seen() == (["client-1", "client-2"], ["running", "running"])
    one.answer = None
    clock.advance_ms(4_900)
    assert seen() == (["client-1", "client-2"], ["running", "running"])
    clock.advance_ms(200)
    assert seen() == (["client-2"], ["does not answer", "running"])


def test_metrics_of_a_client_without_an_id_as_before_its_start_hide_none_of_the_supervisor(monkeypatch):
    clock = ManualClock()
    supervisor, _ = supervised(monkeypatch, clock, 2)
    for number, client in ((1, ""), (2, "client-2")):
        sample = Sample("client-state", (), number)
        supervisor._hear(supervisor._living[number], Measured("shop", client, [sample]))
    samples = WatchedWorkers(supervisor, None, clock).samples()
    assert {client: [one.name for one in found] for client, found in samples.items()} == {
        "": ["worker-restarts-total", "worker-restarts-total", "client-state"],
        "client-2": ["client-state"],
    }

"""A supervisor hears what a worker's process says, to its end and no further."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from unittest import mock

import pytest

from pystreams.cli.commands.workers.channel import Job
from pystreams.cli.commands.workers.supervisor import Supervisor
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr, take_down_logs
from pystreams.clock import ManualClock
from pystreams.runtime.supervisor.supervision import Report, Supervision


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

    def __init__(self, job: Job) -> None:
        self.number = job.number
        self.last_lines: list[str] = []
        self.channel, self.output, self.log = Endless(), Endless(), Endless()
        self.questions, self._answers = socket.socketpair()
        self.pid = 0

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
    with Supervisor(supervision, {1: job}) as supervisor:
        stop = mock.Mock(is_set=lambda: supervision.workers[1].failures > 0)
        supervisor.run(stop, lambda: None)
    assert supervision.over
    take_down_logs()
    assert "worker 1 ended with exit code 7" in capsys.readouterr().err


class Asked:
    """The process of a worker that never answers. ``groups``: whether each look was to ask the log, too."""

    def __init__(self) -> None:
        self.groups: list[bool] = []
        self.channel = mock.Mock(send=lambda request: self.groups.append(request.with_group))


def test_the_log_is_asked_about_the_group_by_one_of_the_workers_and_only_for_those_who_want_it(monkeypatch):
    monkeypatch.setattr("pystreams.cli.commands.workers.supervisor._LOOK_S", 0.0)
    supervision = Supervision(3, ManualClock())
    supervision.begin()
    supervisor = Supervisor(supervision, {})
    processes = {number: Asked() for number in (1, 2, 3)}
    supervisor._processes.update(processes)
    for number in (2, 3):
        supervision.heard(number, Report("running", records=0, lag=0, tasks=1))
    supervisor.ask_for_looks(with_group=True)
    supervisor.ask_for_looks(with_group=False)
    # The first one has not started yet.
    assert [process.groups for process in processes.values()] == [[], [True, False], [False, False]]

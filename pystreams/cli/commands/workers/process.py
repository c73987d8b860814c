"""The process of one worker, from the supervisor's side."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import deque
from contextlib import ExitStack
from typing import IO, Final

from pystreams.cli.commands.workers.channel import Channel, Job, StacksRequest, StopRequest
from pystreams.cli.terminal.logs import LogOptions
from pystreams.serving.stores.ended_answers import EndedAnswers, shared_memory

#: The number of lines of a worker's log that are shown again if it dies without a reason.
LAST_LINES: Final = 5

#: The number of a spare process, until it gets the job of a worker.
SPARE: Final = 0

_READ_BYTES: Final = 65_536

#: Longer lines are split.
_LINE_BYTES_MAX: Final = 1 << 20


class LineReader:
    """Reads lines from a pipe without blocking."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._unread = b""
        os.set_blocking(pipe.fileno(), False)

    def fileno(self) -> int:
        """For selectors."""
        return self._pipe.fileno()

    def read(self) -> list[str] | None:
        """The lines that are complete, and at the end of the pipe the rest; None after that."""
        try:
            arrived = os.read(self.fileno(), _READ_BYTES)
        except BlockingIOError:
            return []
        if not arrived and not self._unread:
            return None
        *whole, self._unread = (self._unread + (arrived or b"\n")).split(b"\n")
        if len(self._unread) > _LINE_BYTES_MAX:
            whole, self._unread = [*whole, self._unread], b""
        return [line.decode(errors="replace") for line in whole]

    def close(self) -> None:
        self._pipe.close()


class WorkerProcess:
    """A running worker, or a process that will become one. It has a session of its own, so that only its supervisor
    gets Ctrl-C; it ends when the channel closes."""

    def __init__(self, application: str, number: int = SPARE) -> None:
        """Start it; it waits for its job. A spare one, whose number its job gives, imports everything meanwhile. Raises
        ``OSError`` if the system has no room for it."""
        self.number = number
        self.logs = LogOptions()
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        with ExitStack() as if_it_fails, ExitStack() as once_it_has_them:
            ours, theirs = socket.socketpair()
            if_it_fails.enter_context(ours)
            once_it_has_them.enter_context(theirs)
            #: For questions about its stores; whoever asks them closes it.
            self.questions, answers = socket.socketpair()
            if_it_fails.enter_context(self.questions)
            once_it_has_them.enter_context(answers)
            memory = shared_memory()
            once_it_has_them.callback(os.close, memory)
            #: Which of its answers hold.
            self.ended_answers = EndedAnswers(memory)
            self._process = _popen(application, number, theirs.fileno(), answers.fileno(), memory)
            if_it_fails.pop_all()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output = LineReader(self._process.stdout)
        self.log = LineReader(self._process.stderr)
        ours.setblocking(False)
        self.channel = Channel(ours)
        #: It has to be asked to stop, and its channel was full.
        self._stop_is_due = False

    def begin(self, job: Job) -> None:
        """Give it its job."""
        self.number, self.logs = job.number, job.logs
        self.channel.send(job)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """The exit code: None while the process is alive; negative if a signal has killed it."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to commit and to end, as soon as it reads its channel: ``tick`` repeats it until then."""
        self._stop_is_due = not self.channel.send(StopRequest())

    def tick(self) -> None:
        """Send what could not be sent before. Called several times a second."""
        if self._stop_is_due:
            self.stop()
        else:
            self.channel.send_rest()

    def ask_for_stacks(self) -> None:
        """Ask it to log where its threads are."""
        self.channel.send(StacksRequest())

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def discard(self) -> None:
        """End a process that has no job, and release what belongs to it."""
        self.kill()
        self.questions.close()
        self.close()

    def close(self) -> None:
        """Release what belongs to a process that has ended."""
        for opened in (self.channel, self.output, self.log):
            opened.close()


def _popen(
    application: str, number: int, channel: int, questions: int, ended_answers: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this program itself
        [
            *(sys.executable, "-m", "pystreams.cli.commands.workers.worker_program"),
            *("--application", application),
            *(("--spare",) if number == SPARE else ("--number", str(number))),
            *("--channel", str(channel)),
            *("--questions", str(questions)),
            *("--ended-answers", str(ended_answers)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[channel, questions, ended_answers],
        start_new_session=True,
    )

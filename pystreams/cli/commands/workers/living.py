"""A worker that has a process, as its supervisor knows it: its last answers, and the questions that it has not answered
yet."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

from pystreams.cli.commands.workers.channel import LagRequest, LookRequest, ThreadsRequest
from pystreams.cli.commands.workers.process import WorkerProcess
from pystreams.runtime.supervisor.worker import Measured
from pystreams.serving.lag import Lag
from pystreams.serving.live.look import ClientLook
from pystreams.serving.stores.lines import Line
from pystreams.serving.threads import ClientThreads

#: A worker that could not make an answer sends none. It is asked again after this time.
REPEAT_MS: Final = 10_000.0

Answer: TypeAlias = ClientLook | ClientThreads | Lag
Request: TypeAlias = LookRequest | ThreadsRequest | LagRequest

A = TypeVar("A", ClientLook, ClientThreads, Lag)


class LivingWorker:
    """It lives as long as its process: the next process of the same number is another one. The supervisor's lock is
    held where ``owes``, ``ask`` and ``heard`` are called."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        #: Where to ask about its stores.
        self.line = Line(process.questions, process.ended_answers)
        #: Its last metrics.
        self.measured: Measured | None = None
        #: It was asked for the lag, and has not answered.
        self.is_silent_about_lag = False
        self.has_ended = False
        self._answers: dict[type[Answer], Answer] = {}
        #: The times (monotonic) of the requests that it has not answered yet.
        self._asked_ms: dict[type[Answer], float] = {}

    def last(self, kind: type[A]) -> A | None:
        """Its last answer of this kind; None: there was none yet."""
        answer = self._answers.get(kind)
        assert answer is None or isinstance(answer, kind)
        return answer

    def owes(self, kind: type[Answer]) -> bool:
        """Whether it was asked for an answer of this kind that has not come."""
        return kind in self._asked_ms

    def ask(self, kind: type[Answer], request: Request, now_ms: float) -> None:
        """Ask for an answer of this kind, unless one is still to come: requests that a worker does not read fill its
        channel, and a stop could not be sent."""
        asked_ms = self._asked_ms.get(kind)
        if asked_ms is None or now_ms - asked_ms >= REPEAT_MS:
            self._asked_ms[kind] = now_ms
            if not self.process.channel.send(request):
                del self._asked_ms[kind]

    def heard(self, answer: Answer) -> None:
        """It has answered."""
        self._answers[type(answer)] = answer
        self._asked_ms.pop(type(answer), None)

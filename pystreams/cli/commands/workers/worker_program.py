"""A worker of ``pystreams run --workers``: gets its job over a channel, runs the application, and reports its progress.

It stops cleanly when the supervisor asks for it, and when the supervisor is gone.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, NoReturn, TypeVar

from pystreams.cli.commands.workers.channel import (
    Channel,
    Job,
    LagRequest,
    LookRequest,
    Message,
    StacksRequest,
    ThreadsRequest,
)
from pystreams.cli.garbage import leave_out_what_stays
from pystreams.cli.stacks import log_stacks
from pystreams.cli.telemetry import telemetry
from pystreams.cli.terminal.exits import Exit, end_now, exit_of
from pystreams.cli.terminal.logs import log_to_stderr
from pystreams.cli.terminal.user_lines import user_lines
from pystreams.cli.watching import announce
from pystreams.clock import SystemClock
from pystreams.errors import (
    AppLoadError,
    ConfigError,
    RetentionError,
    StreamsError,
    TopologyError,
)
from pystreams.runtime.run_client import reached_the_end
from pystreams.runtime.streams import Streams
from pystreams.runtime.supervisor.worker import Failure, Measured, Report
from pystreams.runtime.threads.progress import Progress
from pystreams.serving.lag import WAIT_S, lag_now
from pystreams.serving.live.client_look import ClientLooks
from pystreams.serving.stores.ended_answers import EndedAnswers
from pystreams.serving.threads import client_threads

#: The time that a worker has for its last commit after its supervisor is gone.
ORPHAN_TIMEOUT_S = 30.0

_REPORT_INTERVAL_S = 0.2

#: Every how many reports there are metrics, too. Metrics are larger, and are not needed that often.
_REPORTS_PER_MEASURED = 10

#: A look waits at most this long for a supervisor that does not read. The next look will be newer.
_LOOK_S = 1.0

#: A worker waits this long for the log to find the lag: a little less than the supervisor waits for the worker.
_LAG_S = WAIT_S - 0.5

#: The last report, which has the final counts, waits at most this long for a supervisor that does not read.
_LAST_REPORT_S = 5.0

R = TypeVar("R")

log = logging.getLogger(__name__)


class Leash:
    """Listens to the supervisor. ``stop`` is set when the supervisor asks for it, or is gone; the stacks of all threads
    are logged when it asks for them; ``looks``, ``lags`` and ``threads`` have its requests for each of these."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self.stop = threading.Event()
        self.looks: SimpleQueue[LookRequest] = SimpleQueue()
        self.lags: SimpleQueue[LagRequest] = SimpleQueue()
        self.threads: SimpleQueue[ThreadsRequest] = SimpleQueue()
        self._messages = messages
        self._mutex = threading.Lock()
        #: None until the work begins.
        self._streams: Streams | None = None
        threading.Thread(target=self._listen, name="leash", daemon=True).start()

    def begin(self, streams: Streams) -> None:
        """From now on a stop must end the work cleanly; before this call the process simply exits."""
        with self._mutex:
            self._streams = streams

    def _listen(self) -> None:
        for message in self._messages:
            if isinstance(message, StacksRequest):
                log_stacks(self._streams)
            elif isinstance(message, LookRequest):
                self.looks.put(message)
            elif isinstance(message, LagRequest):
                self.lags.put(message)
            elif isinstance(message, ThreadsRequest):
                self.threads.put(message)
            else:
                self._end_the_work()
        self._end_the_work()
        # The supervisor is gone, so nothing reads the output: writing it must not fail during the last commit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        threading.Event().wait(ORPHAN_TIMEOUT_S)
        os._exit(Exit.FAILED)

    def _end_the_work(self) -> None:
        with self._mutex:
            if self._streams is None:
                os._exit(Exit.OK)
            self.stop.set()


class Reporter:
    """Reports the client's progress to the supervisor a few times a second, whatever the client is doing. The first
    report follows the start, and shows that the application can run."""

    def __init__(self, channel: Channel, streams: Streams, *, until_caught_up: bool, measured: bool) -> None:
        self._channel = channel
        self._streams = streams
        self._until_caught_up = until_caught_up
        self._measured = measured
        self._caught_up = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, _progress: Progress) -> None:
        """Called by the client with each progress."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_reporting, name="reports", daemon=True)
            self._thread.start()
        self._caught_up = self._until_caught_up and reached_the_end(self._streams)

    def end(self) -> None:
        """Send the last report."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _keep_reporting(self) -> None:
        for reports in count():
            self._report()
            if self._measured and reports % _REPORTS_PER_MEASURED == 0:
                self._measure()
            if self._ended.wait(_REPORT_INTERVAL_S):
                break
        self._report(_LAST_REPORT_S)

    def _measure(self) -> None:
        try:
            streams = self._streams
            measured = Measured(streams.config.application_id, streams.client_id, streams.metrics.snapshot())
        except Exception:
            # Without reports the supervisor would take the worker for dead, and kill it.
            log.exception("the metrics are not known")
        else:
            self._channel.send(measured, timeout_s=_REPORT_INTERVAL_S)

    def _report(self, timeout_s: float = 0) -> None:
        progress, config = self._streams.progress(), self._streams.config
        state = "restoring" if progress.restoring else self._streams.state.value.replace("_", " ")
        self._channel.send(
            Report(
                state,
                records=progress.source_records,
                internal_records=progress.internal_records,
                lag=progress.lag,
                tasks=sum(len(thread.tasks) for thread in progress.threads),
                all_tasks=self._streams.task_count,
                standbys=len(progress.standbys),
                standby_lag=progress.standby_lag,
                caught_up=self._caught_up,
                patience_ms=config.session_timeout_ms,
                is_awaited=config.group_instance_id is not None and config.on_kafka,
                left_out=self._streams.left_out,
                late=self._streams.late_records,
                joins=self._streams.joins,
                health=self._streams.health(),
            ),
            timeout_s=timeout_s,
        )


class Answering(Generic[R]):
    """Answers requests of one kind, in a thread that waits for them: one answer is for all that have come."""

    def __init__(self, requests: SimpleQueue[R], answer: Callable[[R], None], name: str) -> None:
        self._requests = requests
        self._answer = answer
        threading.Thread(target=self._keep_answering, name=name, daemon=True).start()

    def _keep_answering(self) -> None:
        while True:
            request = self._requests.get()
            while not self._requests.empty():
                request = self._requests.get()
            try:
                self._answer(request)
            except Exception:
                # For the supervisor the worker is silent then, and is asked again later.
                log.exception("a request of the supervisor could not be answered")


class Looker:
    """Answers the requests for looks, for threads, and for the lag of the application, which may have to wait for the
    log."""

    def __init__(self, channel: Channel, streams: Streams, worker: int, leash: Leash) -> None:
        self._channel = channel
        self._streams = streams
        self._looks = ClientLooks(streams, worker)
        self._described = False
        Answering(leash.looks, self._look, "looks")
        Answering(leash.lags, self._lag, "lags")
        Answering(leash.threads, self._threads, "threads")

    def _threads(self, _request: ThreadsRequest) -> None:
        self._channel.send(client_threads(self._streams, SystemClock()), timeout_s=_LOOK_S)

    def _lag(self, _request: LagRequest) -> None:
        lag = lag_now(self._looks.group, SystemClock(), _LAG_S)
        self._channel.send(lag, timeout_s=_LOOK_S)

    def _look(self, request: LookRequest) -> None:
        if not self._described and (described := self._looks.described()) is not None:
            self._described = self._channel.send(described, timeout_s=_LOOK_S)
        self._channel.send(self._looks.look(with_group=request.with_group), timeout_s=_LOOK_S)


def run_job(
    job: Job, channel: Channel, questions: socket.socket, ended_answers: EndedAnswers, leash: Leash
) -> None:
    """Run until the supervisor stops it; meanwhile answer questions about the stores, and requests for looks. Raises
    the error with which the application fails."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of

    log_to_stderr(job.logs)
    application = load_application(job.application)
    streams = Streams(application, settings_of(application, job.settings, **job.flags), worker=job.number)
    reporter = Reporter(channel, streams, until_caught_up=job.until_caught_up, measured=job.watched)
    if job.watched:
        from pystreams.serving.stores.lines import LineServer
        from pystreams.serving.stores.local import LocalStores

        LineServer(questions, LocalStores(streams), ended_answers)
        Looker(channel, streams, job.number, leash)
    announce(streams, job.endpoint, warns=job.number == 1)
    leash.begin(streams)
    leave_out_what_stays()
    try:
        with telemetry(streams, wanted=job.otel, worker=job.number):
            streams.run(stop=leash.stop, on_progress=reporter)
    finally:
        reporter.end()


def import_what_jobs_need() -> None:
    """Import what a job on Kafka imports later, except the program."""
    import pystreams.broker.kafka
    import pystreams.cli.application.loading
    import pystreams.cli.application.settings
    import pystreams.serving.stores.lines
    import pystreams.serving.stores.local  # noqa: F401


def show_in_process_lists(number: int) -> None:
    """Make the number of the worker the name of the process, where the system allows it: a spare process has none in
    its arguments."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"worker {number}")


def failure_of(error: StreamsError) -> Failure:
    """An error as the supervisor gets it."""
    return Failure(
        what=error.what,
        where=error.place,
        line=user_lines(error.__cause__),
        why=error.why,
        hint=error.hint,
        exit_code=exit_of(error),
        action=error.action,
        hopeless=isinstance(error, ConfigError | AppLoadError | TopologyError | RetentionError),
    )


def main() -> NoReturn:
    """``python -m pystreams.cli.commands.workers.worker_program --application NAME [--number N | --spare] --channel
    DESCRIPTOR --questions DESCRIPTOR --ended-answers DESCRIPTOR``.

    The application and the number only serve to recognize the process in ``ps``.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("application", "number"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--spare", action="store_true", help="import everything before there is a job")
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--questions", type=int, required=True)
    parser.add_argument("--ended-answers", type=int, required=True)
    arguments = parser.parse_args()
    for descriptor in (arguments.channel, arguments.questions):
        os.set_inheritable(descriptor, False)
    # Python buffers output to a pipe in blocks, and the last output of a killed process would be lost.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    if arguments.spare:
        import_what_jobs_need()
    channel = Channel(socket.socket(fileno=arguments.channel))
    questions = socket.socket(fileno=arguments.questions)
    ended_answers = EndedAnswers(arguments.ended_answers)
    os.close(arguments.ended_answers)
    messages = channel.messages()
    job = next(messages, None)
    if not isinstance(job, Job):
        sys.exit(Exit.OK)
    show_in_process_lists(job.number)
    try:
        run_job(job, channel, questions, ended_answers, Leash(messages))
    except StreamsError as error:
        channel.send(failure_of(error), timeout_s=None)
        if error.threads_at_work:
            end_now(exit_of(error))
        sys.exit(exit_of(error))
    sys.exit(Exit.OK)


if __name__ == "__main__":
    main()

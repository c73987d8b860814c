"""An application in a process that writes down what it owns.

    python -m tests.kafka.churn.worker ADDRESS STATE JOURNAL

The journal has a line of JSON for each of these, with the machine's monotonic clock:

    open, close    a task, from before its committed offsets are read until it is closed and will not be touched again
    alive          from when until when the coordinator took this process for a member at least, give or take the
                   session timeout: from the sending of a heartbeat or a join that was answered well
    refused        a commit that the group did not take; ``sent`` tells if it was the coordinator who said so
    replaced       a heartbeat or a join whose answer was that the group goes on without this process; its tasks are
                   then closed without a commit, so there is nothing to refuse
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka import errors

from pystreams import App, Streams
from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.broker.kafka.coordinator import StreamsCoordinator
from pystreams.broker.kafka.member import KafkaMember
from pystreams.errors import TaskMigratedError
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.tasks.task_opening import TaskOpener

APPLICATION = "churn"
INPUT, BY_KEY, BY_DIGIT = "in", "by-key-out", "by-digit-out"
SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS, COMMIT_INTERVAL_MS = 6_000, 500, 100

_REFUSALS = (
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.FencedInstanceIdError,
)
_REPLACED = (errors.UnknownMemberIdError, errors.IllegalGenerationError, errors.FencedInstanceIdError)


def application(bootstrap_servers: str, state_dir: Path) -> App:
    """Two sub-topologies with state and changelogs, a repartition topic between them."""
    app = App(
        APPLICATION,
        bootstrap_servers=bootstrap_servers,
        state_dir=state_dir,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        commit_interval_ms=COMMIT_INTERVAL_MS,
        poll_ms=20,
        # As with a session that is longer than 10 s: what waits in a frozen process expires before its session does.
        client_settings={"producer.delivery.timeout.ms": 5_500, "producer.request.timeout.ms": 5_000},
    )
    records = app.stream(INPUT, key=str, value=int)
    records.group_by_key().count(name="by-key").to_stream().to(BY_KEY)
    digits = records.group_by(lambda key, _value: key[-1], key=str, value=int)
    digits.count(name="by-digit").to_stream().to(BY_DIGIT)
    return app


class Journal:
    """Lines at the end of a file, each written at once: a killed process leaves whole ones."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, what: str, **details: Any) -> None:
        line = json.dumps({"at": time.monotonic(), "what": what, **details})
        os.write(self._file, line.encode() + b"\n")


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Have ``around(original, self, *arguments, **options)`` called instead of a method."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        return around(original, self, *arguments, **options)

    setattr(owner, name, wrapper)


def write_down(journal: Journal) -> None:
    """Have what happens to tasks and membership written down. Production code knows nothing of it."""
    _write_down_tasks(journal)
    _write_down_membership(journal)
    _write_down_refusals(journal)


def _write_down_tasks(journal: Journal) -> None:
    def opening(original: Any, self: TaskOpener, task: ActiveTask) -> None:
        original(self, task)
        journal.write("open", task=str(task.task_id))

    def closing(original: Any, self: TaskManager, task: ActiveTask) -> None:
        had = task.status is not TaskStatus.CREATED
        original(self, task)
        if had:
            journal.write("close", task=str(task.task_id))

    _wrap(TaskOpener, "open", opening)
    _wrap(TaskManager, "_close", closing)


def _write_down_membership(journal: Journal) -> None:
    def answer(original: Any, self: StreamsCoordinator, response: Any, sent: float) -> Any:
        try:
            return original(self, response, sent)
        except _REPLACED as error:
            journal.write("replaced", why=type(error).__name__)
            raise

    def joined(original: Any, self: StreamsCoordinator, response: Any, sent: float) -> Any:
        self.join_sent = sent
        return answer(original, self, response, sent)

    def synced(original: Any, self: StreamsCoordinator, response: Any, sent: float) -> Any:
        assignment = answer(original, self, response, sent)
        # The generation that this answer belongs to was joined then, and nobody was removed from it since.
        journal.write("alive", since=self.join_sent, until=sent)
        return assignment

    def answered(original: Any, self: StreamsCoordinator, response: Any, sent: float) -> Any:
        try:
            answer(original, self, response, sent)
        except errors.RebalanceInProgressError:
            journal.write("alive", since=sent, until=sent)
            raise
        journal.write("alive", since=sent, until=sent)

    _wrap(StreamsCoordinator, "_process_join_group_response", joined)
    _wrap(StreamsCoordinator, "_process_sync_group_response", synced)
    _wrap(StreamsCoordinator, "_handle_heartbeat_response", answered)


def _write_down_refusals(journal: Journal) -> None:
    refused = {"sent": False}

    def asking(original: Any, self: GroupConnection, *arguments: Any, **options: Any) -> None:
        refused["sent"] = False
        try:
            original(self, *arguments, **options)
        except _REFUSALS:
            refused["sent"] = True
            raise

    def committing(original: Any, self: KafkaMember, *offsets: Any, **options: Any) -> None:
        refused["sent"] = False
        try:
            original(self, *offsets, **options)
        except TaskMigratedError as error:
            journal.write("refused", sent=refused["sent"], why=error.why)
            raise

    # Who may have been frozen asks first whether it is still a member, and goes no further if it is not.
    _wrap(GroupConnection, "heartbeat", asking)
    _wrap(KafkaMember, "confirm", committing)
    _wrap(GroupConnection, "commit", asking)
    _wrap(KafkaMember, "commit", committing)


def main() -> None:
    bootstrap_servers, state_dir, journal = sys.argv[1:]
    write_down(Journal(Path(journal)))
    Streams(application(bootstrap_servers, Path(state_dir))).run()


if __name__ == "__main__":
    main()

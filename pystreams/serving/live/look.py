"""The visible state of a running application, as data: the JSON of ``/state`` has the same fields.

Times are in ms since the epoch, durations in ms, ratios from 0 to 1. None: not known, or not measured. Counts begin
when the process starts; the page computes rates from them. The lengths of lists are limited, because workers send them
to their supervisor about once a second.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from pystreams.runtime.health import Health

#: The largest number of tasks that a client shows (tasks that are not running come first), and of items in each other
#: list.
TASKS_MAX: Final = 256
ROWS_MAX: Final = 64


class Described(msgspec.Struct, frozen=True, tag=True):
    """The part that does not change while the application runs. ``picture`` is the SVG of its topology, ``topology``
    the same for programs (``fingerprint.shape``), ``fingerprint`` that of the program."""

    application_id: str
    log: str
    guarantee: str
    fingerprint: str
    pystreams: str
    python: str
    picture: str
    topology: list[Any]


class InputLook(msgspec.Struct, frozen=True):
    """An input partition of a task; ``lag`` counts unprocessed records, by offsets."""

    topic: str
    partition: int
    lag: int | None


class RestoreLook(msgspec.Struct, frozen=True):
    """A store that is being restored: ``done`` of ``total`` changelog offsets."""

    store: str
    done: int
    total: int


class TaskLook(msgspec.Struct, frozen=True):
    """A task of a thread. ``buffered`` records were read and wait."""

    task: str
    status: str
    processed: int
    buffered: int
    lag: int | None
    stream_time_ms: int | None
    inputs: list[InputLook]
    restoring: list[RestoreLook]


class StandbyLook(msgspec.Struct, frozen=True):
    """A standby task; ``lag`` counts the changelog records that it lacks."""

    task: str
    lag: int | None


class ThreadLook(msgspec.Struct, frozen=True):
    """A thread with its tasks. The ratios are shares of the last minute; ``trouble`` is what keeps it from being
    ready."""

    name: str
    state: str
    records: int
    processing: float | None
    committing: float | None
    polling: float | None
    trouble: list[str]
    tasks: list[TaskLook]
    standbys: list[StandbyLook]


class StepLook(msgspec.Struct, frozen=True):
    """The records of a step. ``late`` records came too late for a window, by ``late_ms`` at most, and a grace of
    ``grace_ms`` would have kept them. ``late_dropped`` of them are also among the ``dropped``; the others are dead
    letters, or a join has processed them, without the partners for which they were too late. ``processed`` is None if
    steps are not counted. For a join, ``missed`` counts the records without a match; some joins stop counting when a
    record finds a match, and then ``found`` is 1. ``sought`` describes a match (``records found a row in table
    prices``), ``hint`` is advice if there is none."""

    step: str
    processed: int | None = None
    late: int = 0
    late_ms: int = 0
    grace_ms: int = 0
    dropped: int = 0
    skipped: int = 0
    dead_letters: int = 0
    missed: int = 0
    found: int = 0
    sought: str = ""
    hint: str = ""
    late_dropped: int = 0


class StoreLook(msgspec.Struct, frozen=True):
    """The partitions of a store that this client has, added up. ``reads`` are reads of its cache, ``hits`` those that
    the cache has answered; ``entries`` is an estimate of RocksDB."""

    store: str
    reads: int | None
    hits: int | None
    entries: int | None
    bytes: int | None


class LeftOutLook(msgspec.Struct, frozen=True):
    """Records that were left out for the same reason."""

    fate: str
    step: str
    topic: str | None
    why: str
    records: int


class FailureLook(msgspec.Struct, frozen=True):
    """A record that failed. ``error`` is the text of the error, which may quote from the record."""

    at_ms: int
    fate: str
    task: str
    step: str
    position: str
    why: str
    error: str


class MemberLook(msgspec.Struct, frozen=True):
    """A thread of the group, as the log knows it. ``endpoint``: the address at which its process answers queries,
    ``host:port``; empty: it answers none."""

    thread: str
    process_id: str
    host: str
    tasks: list[str]
    standbys: list[str]
    same_program: bool | None
    endpoint: str = ""


class CommittedLook(msgspec.Struct, frozen=True):
    """An input partition, as the log knows it; ``lag`` counts the records that are not committed."""

    topic: str
    partition: int
    task: str
    committed: int | None
    end: int
    lag: int


class GroupLook(msgspec.Struct, frozen=True):
    """The application in all its processes, as its log knows it. ``trouble``: why the last requests to the log
    failed."""

    at_ms: int
    rebalancing: bool
    members: list[MemberLook]
    inputs: list[CommittedLook]
    tasks: list[str]
    trouble: str = ""


class ClientLook(msgspec.Struct, frozen=True, tag=True):
    """A client at one moment. ``records`` are those of its inputs, ``internal_records`` those that its internal topics
    brought it. ``more_tasks`` is the number of tasks that are not shown. ``group`` is None if it was not
    requested, or is not known yet. ``endpoint``: the instance that has sent this, ``host:port``; None: this
    instance."""

    client_id: str
    worker: int | None
    at_ms: int
    started_ms: int
    state: str
    health: Health
    records: int
    threads: list[ThreadLook]
    more_tasks: int
    steps: list[StepLook]
    stores: list[StoreLook]
    left_out: dict[str, int]
    left_out_by: list[LeftOutLook]
    failures: list[FailureLook]
    group: GroupLook | None = None
    endpoint: str | None = None
    internal_records: int = 0


class WorkerLook(msgspec.Struct, frozen=True):
    """A worker, as its supervisor sees it."""

    number: int
    state: str
    restarts: int
    pid: int | None


class Look(msgspec.Struct, frozen=True):
    """The application at one moment, as this process and its workers see it. In ``clients``, those of other instances
    come last."""

    at_ms: int
    health: Health
    clients: list[ClientLook]
    workers: list[WorkerLook]
    group: GroupLook | None


class Shown(Protocol):
    """A running application that the page shows. Called from the server's threads."""

    def described(self) -> Described | None:
        """The part that does not change; None before it is known."""
        ...

    def look(self, *, with_group: bool) -> Look:
        """The application now. ``with_group``: also ask the log, as for ``ClientLooks.look``."""
        ...

"""The work that a stack does: a step and its part, or another activity of the thread."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

from pystreams.profiling.sampler import Stack, StackFrame

_PACKAGE: Final = f"{Path(__file__).parents[1]}/"


class WorkKind(StrEnum):
    """A kind of work. The values are for people."""

    # Of a step, also in generated code.
    FUNCTION = "function"
    ENCODE = "encode"
    PRODUCE = "produce"
    ENGINE = "engine"
    # Of a step.
    STORE_READ = "store read"
    STORE_WRITE = "store write"
    CACHE = "cache"
    # Of a thread.
    IDLE = "idle"
    POLL = "poll"
    DECODE = "decode"
    COMMIT = "commit"
    FLUSH = "commit: caches"
    WRITE_STORES = "commit: stores"
    PUNCTUATE = "punctuators"
    GROUP = "group"
    RESTORE = "open and restore"
    OTHER = "other"


#: The activity of a thread, by the functions on its stack. The innermost one counts.
ACTIVITIES: Final = {
    ("runtime/threads/rounds.py", "Rounds._poll"): WorkKind.POLL,
    ("runtime/threads/rounds.py", "Rounds._pause"): WorkKind.IDLE,
    ("runtime/threads/rounds.py", "Rounds._poll_member"): WorkKind.GROUP,
    ("runtime/threads/rounds.py", "Rounds._apply"): WorkKind.GROUP,
    ("runtime/threads/rounds.py", "Rounds._fill_tasks"): WorkKind.RESTORE,
    ("broker/embedded/consumer.py", "EmbeddedConsumer._wait"): WorkKind.IDLE,
    ("broker/kafka/consumer.py", "KafkaConsumer._wait"): WorkKind.IDLE,
    ("broker/kafka/consumer.py", "KafkaConsumer._pause"): WorkKind.IDLE,
    ("engine/stream_task.py", "StreamTask._punctuate_stream_time"): WorkKind.PUNCTUATE,
    ("runtime/tasks/task_manager.py", "TaskManager.add_batches"): WorkKind.OTHER,
    ("runtime/tasks/task_manager.py", "TaskManager.punctuate"): WorkKind.PUNCTUATE,
    ("runtime/tasks/task_manager.py", "TaskManager.commit"): WorkKind.COMMIT,
    ("runtime/tasks/task_manager.py", "TaskManager.close"): WorkKind.COMMIT,
    ("runtime/tasks/task_manager.py", "TaskManager.upkeep"): WorkKind.COMMIT,
    ("state/task_stores.py", "TaskStores.flush_caches"): WorkKind.FLUSH,
    ("state/task_stores.py", "TaskStores.commit"): WorkKind.WRITE_STORES,
}

_DECODING: Final = ("engine/input/decoding.py", "engine/input/input_decoding.py")
#: Functions of stores whose names begin like this change something; the others read.
_WRITES: Final = ("append", "delete", "put", "remove", "set", "write")


class Work(NamedTuple):
    """The work of a thread. ``step`` is empty for work outside of steps."""

    step: str
    part: WorkKind


def work_of(stack: Stack) -> Work:
    """The work of a thread with this stack."""
    innermost = last_owned(stack)
    if innermost is None:
        return Work("", _activity_of(stack))
    owner = stack[innermost].owner
    assert owner is not None
    return Work(owner.step, _part_of(WorkKind(owner.work), stack[innermost + 1 :]))


def last_owned(stack: Stack) -> int | None:
    """The position of the innermost place that belongs to a step; None if there is none."""
    for position in range(len(stack) - 1, -1, -1):
        owner = stack[position].owner
        if owner is not None and owner.step:
            return position
    return None


def file_of(code: CodeType) -> str:
    """The file of a function of pystreams, relative to the package; empty for other functions."""
    name = code.co_filename
    return name.removeprefix(_PACKAGE) if name.startswith(_PACKAGE) else ""


def _activity_of(stack: Sequence[StackFrame]) -> WorkKind:
    for code, _ in reversed(stack):
        file = file_of(code)
        if file in _DECODING:
            return WorkKind.DECODE
        found = ACTIVITIES.get((file, code.co_qualname))
        if found is not None:
            return found
    return WorkKind.OTHER


def _part_of(part: WorkKind, below: Sequence[StackFrame]) -> WorkKind:
    """``below`` are the functions that a step's line has called; ``part`` is the line's own."""
    for code, _ in below:
        file = file_of(code)
        if file.startswith("state/"):
            return _store_part(code, below[-1].code)
        if file.startswith("broker/"):
            return WorkKind.PRODUCE
        if part is not WorkKind.ENCODE and part is not WorkKind.PRODUCE:
            part = (
                WorkKind.ENCODE
                if file.startswith("serde/")
                else WorkKind.ENGINE
                if file
                else WorkKind.FUNCTION
            )
    return part


def _store_part(entered: CodeType, innermost: CodeType) -> WorkKind:
    """``entered`` is the function of the store that was called."""
    file = file_of(innermost)
    if file.startswith("broker/"):
        return WorkKind.PRODUCE
    if file.startswith("state/cache/"):
        return WorkKind.CACHE
    return WorkKind.STORE_WRITE if entered.co_name.lstrip("_").startswith(_WRITES) else WorkKind.STORE_READ

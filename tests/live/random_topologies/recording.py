"""In which order live tasks read their records, and when they flushed their caches: what a result may depend on.

Within an application's process, tasks tell a recorder what they do; a file keeps it where the process is to be killed.
What was not committed is forgotten when a task starts again.
"""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from unittest.mock import patch

from pystreams.engine.global_state import GLOBAL_TASK
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.partition_group import Run
from pystreams.engine.input.turns import Turns
from pystreams.engine.stream_task import Position, StreamTask
from pystreams.ids import TaskId, TopicPartition

#: What stores hold when their task closes, as ``logged`` gives it.
Contents = dict[str, list[Any]]


class Read(NamedTuple):
    """A record was processed."""

    topic: str
    offset: int


class Flush(NamedTuple):
    """Caches were flushed; a commit follows."""


Event = Read | Flush


class Recorder:
    """What the tasks of one application did, over several starts."""

    def __init__(self, path: Path | None = None, kill_at: int | None = None) -> None:
        """``path``: where each event is written at once. ``kill_at``: the event at which the process kills itself."""
        self.contents: dict[TaskId, Contents] = {}
        self.records = 0
        self._events: dict[TaskId, list[Event]] = defaultdict(list)
        self._lock = Lock()
        self._path = path
        self._left = kill_at

    def events(self) -> Mapping[TaskId, list[Event]]:
        """By task, what is committed."""
        return self._events

    def load(self, path: Path) -> None:
        """Take over what a process has written that is gone."""
        for line in path.read_text(encoding="utf-8").splitlines():
            task, kind, *rest = json.loads(line)
            self._apply(TaskId(*task), kind, rest)

    def tell(self, task: TaskId, kind: str, *rest: Any) -> None:
        """Keep an event: ``reads`` of a topic and offsets, ``flush``, or ``start`` at offsets by topic."""
        if task == GLOBAL_TASK:
            # Its stores are whole before others begin, and it has no commit of its own.
            return
        with self._lock:
            self._apply(task, kind, list(rest))
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([task, kind, *rest]) + "\n")
            self._come_nearer()

    def pass_by(self) -> None:
        """A moment at which the process may be killed, too."""
        with self._lock:
            self._come_nearer()

    def _come_nearer(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def _apply(self, task: TaskId, kind: str, rest: list[Any]) -> None:
        events = self._events[task]
        if kind == "reads":
            topic, offsets = rest
            events += [Read(topic, offset) for offset in offsets]
            self.records += len(offsets)
        elif kind == "flush":
            events.append(Flush())
        else:
            del events[_committed(task, events, rest[0]) :]


def _committed(task: TaskId, events: list[Event], positions: Mapping[str, int]) -> int:
    """How many of the events a task's commit has: it stands behind a flush, and has read what is before its
    positions."""
    missing = {e for e in events if isinstance(e, Read) and e.offset < positions.get(e.topic, 0)}
    beyond = False
    found = 0 if not missing else None
    for number, event in enumerate(events, 1):
        if isinstance(event, Read):
            missing.discard(event)
            beyond = beyond or event.offset >= positions.get(event.topic, 0)
        elif not missing and not beyond:
            found = number
    assert found is not None, f"{task} starts at {positions}, where it never flushed: {events}"
    return found


@contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    """Tasks of this process tell ``recorder``."""
    with ExitStack() as stack:
        for (of, name), wrapper in _WRAPPERS.items():
            original = getattr(of, name)
            stack.enter_context(patch.object(of, name, wrapper(recorder, original)))
        yield


def _start(recorder: Recorder, original: Any) -> Any:
    def start(task: StreamTask, committed: Mapping[TopicPartition, Position], *args: Any) -> None:
        offsets = {partition.topic: position.offset for partition, position in committed.items()}
        recorder.tell(task.task_id, "start", offsets)
        original(task, committed, *args)

    return start


def _run(recorder: Recorder, original: Any) -> Any:
    def run(task: StreamTask, what: Run) -> int:
        recorder.pass_by()
        done: int = original(task, what)
        if done:
            offsets = what.rows.offsets[what.start : what.start + done]
            recorder.tell(task.task_id, "reads", what.queue.partition.topic, list(offsets))
        return done

    return run


def _turns(recorder: Recorder, original: Any) -> Any:
    def turns(task: StreamTask, what: Turns) -> int:
        at = [queue.position for queue in what.queues]
        done: int = original(task, what)
        for _, place in what.order[:done]:
            offset = what.rows[place].offsets[at[place]]
            at[place] += 1
            recorder.tell(task.task_id, "reads", what.queues[place].partition.topic, [offset])
        return done

    return turns


def _flush(recorder: Recorder, original: Any) -> Any:
    def flush(task: HostedTask) -> None:
        original(task)
        recorder.tell(task.stream.task_id, "flush")

    return flush


def _committed_hook(recorder: Recorder, original: Any) -> Any:
    def committed(task: StreamTask) -> None:
        recorder.pass_by()
        original(task)

    return committed


def _close(recorder: Recorder, original: Any) -> Any:
    def close(task: StreamTask) -> None:
        recorder.contents[task.task_id] = contents(task)
        original(task)

    return close


_WRAPPERS = {
    (StreamTask, "start"): _start,
    (StreamTask, "_run"): _run,
    (StreamTask, "_turns"): _turns,
    (HostedTask, "flush"): _flush,
    (StreamTask, "after_commit"): _committed_hook,
    (StreamTask, "close"): _close,
}


def contents(task: StreamTask) -> Contents:
    """What the stores of a task hold."""
    return {name: sorted(store.logged(), key=repr) for name, store in task.stores.items()}

"""Global stores in a backfill: the whole content of their topics up to the cut, for every task that uses them.

The first task that needs them in a folder for temporary files (an executor of Spark has one for each disk) fills them
from their topics, on the disk; later tasks make a copy, whose tables are links. A store that the application keeps only
in memory is filled by each task that needs it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.exchange.rows import record_batch
from pystreams.backfill.local_disks import linked_copy
from pystreams.backfill.plan.dependencies import runs_processor
from pystreams.backfill.sources import Reader
from pystreams.backfill.sources.ranges import InputRange
from pystreams.clock import ManualClock
from pystreams.dsl.operators.global_table_join import GlobalTableJoin
from pystreams.engine.global_state import GlobalState
from pystreams.folders import make_folder
from pystreams.metrics import Metrics
from pystreams.topology.nodes import Node, ProcessorNode

log = logging.getLogger(__name__)

_PREFIX: Final = "pystreams-global-"
_BUILDING: Final = f"{_PREFIX}building-"
_LOCK: Final = "pystreams-global.lock"
_THREAD: Final = "backfill"


class GlobalTables(Mapping[str, Any]):
    """The global stores of an application by name, to read. Open it before they are; close it."""

    def __init__(
        self,
        loaded: LoadedApplication,
        ranges: Iterable[InputRange],
        source: Reader | None,
        cut_time_ms: int,
        *,
        shared: Path,
        own: Path,
    ) -> None:
        """``ranges`` are the backfill's; those of global topics count, which ``source`` has. ``shared`` is a folder
        that the tasks of a machine have in common, ``own`` one of this task alone."""
        topics = loaded.built.global_topics
        self._loaded = loaded
        self._ranges = sorted(
            (one for one in ranges if one.partition.topic in topics), key=lambda one: one.partition
        )
        self._source = source
        self._cut_time_ms = cut_time_ms
        self._shared = shared
        self._own = own / "global"
        self._state: GlobalState | None = None

    def open_for(self, nodes: Iterable[Node]) -> None:
        """Fill the stores, if one of these steps may read them. Raises what their processors raise."""
        steps = (node for node in nodes if isinstance(node, ProcessorNode))
        if self._names and any(_may_read(step) for step in steps):
            self._state = self._opened()

    def __getitem__(self, name: str) -> Any:
        if self._state is None:
            raise KeyError(name)
        return self._state.stores[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Close the stores."""
        state, self._state = self._state, None
        if state is not None:
            state.close()

    @property
    def _names(self) -> list[str]:
        return [store.spec.name for store in self._loaded.built.global_stores]

    def _opened(self) -> GlobalState:
        if any(store.spec.persistent for store in self._loaded.built.global_stores):
            with _locked(self._shared, self._digest()) as built:
                if not built.exists():
                    self._build(built)
                linked_copy(built, self._own)
        return self._filled(self._own)

    def _digest(self) -> str:
        """A digest that distinguishes this backfill's stores from those of others."""
        source = "" if self._source is None else self._source.description
        ranges = [(*one.partition, one.start, one.end) for one in self._ranges]
        content = (self._loaded.built.fingerprint, self._cut_time_ms, source, ranges)
        return blake2b(repr(content).encode(), digest_size=16).hexdigest()

    def _build(self, target: Path) -> None:
        """Fill the stores in the folder that all tasks share. The folder appears only when they are complete."""
        _clear(target.parent)
        building = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=target.parent))
        try:
            self._filled(building).close()
            building.rename(target)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise

    def _filled(self, directory: Path) -> GlobalState:
        """The stores in a directory, with their missing records added partition by partition, so that the result is
        always the same."""
        counts = Counter(one.partition.topic for one in self._ranges)
        state = GlobalState(
            self._loaded.built,
            self._loaded.config,
            counts.__getitem__,
            metrics=Metrics(),
            clock=ManualClock(self._cut_time_ms),
            thread_id=_THREAD,
            directory=directory,
        )
        try:
            there = state.positions()
            missing = [
                InputRange(one.partition, max(one.start, there.get(one.partition, one.start)), one.end)
                for one in self._ranges
            ]
            state.start({one.partition: one.start for one in missing})
            for one in missing:
                if one.start < one.end:
                    _fill(state, one, self._source)
        except BaseException:
            state.close()
            raise
        return state


def _may_read(step: ProcessorNode) -> bool:
    return isinstance(step.operation, GlobalTableJoin) or runs_processor(step)


def _fill(state: GlobalState, input: InputRange, source: Reader | None) -> None:
    assert source is not None, "whoever runs tasks with global stores has the source of their topics"
    count = 0
    for rows in source.read(input):
        if rows.num_rows:
            state.apply([record_batch(rows, input.partition, rows.column("offset").to_pylist())])
            count += rows.num_rows
    log.info("%s: %d records of %s", state.store_of[input.partition.topic], count, input.partition)


@contextmanager
def _locked(folder: Path, digest: str) -> Iterator[Path]:
    """Lock the folder of the stores that all tasks of a machine copy; gives its path, which may not exist yet. One task
    at a time builds or copies them. The operating system releases the lock of a task that dies."""
    make_folder(folder)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder / f"{_PREFIX}{digest}"
    finally:
        os.close(descriptor)


def clear_global_tables(folder: Path) -> None:
    """Delete all files that tasks have left in a folder in which no task is running any more."""
    _clear(folder)
    (folder / _LOCK).unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Delete the stores of other backfills and of killed tasks: running tasks work on copies."""
    for left in folder.glob(f"{_PREFIX}*"):
        shutil.rmtree(left)

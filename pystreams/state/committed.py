"""The stores of a task as of its last commit, for readers in other threads.

    ┌ the task's thread ──────────────┐         ┌ readers ─────────────────────────────────────┐
      write tables, publish a view       ──>      enter, read the view, leave
      close: wait until nobody reads              RocksDB: a snapshot, which a commit does not disturb
    └─────────────────────────────────┘           in memory: the table itself, between two commits
                                                └──────────────────────────────────────────────┘

A *view* is a read-only store of the same kind, without a cache, over only the committed entries, with the stream time
of that commit. So all reading methods work as in the task's own thread, and a reader sees a whole commit, never a part
of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.record import ContextCell
from pystreams.serde.base import AnySerde, Serde
from pystreams.state.commit_mark import CommitMark
from pystreams.state.disk.rocksdb import RocksTable
from pystreams.state.disk.rocksdb_snapshot import RocksSnapshot
from pystreams.state.iterators import StoreIterator
from pystreams.state.layers.layer import Layer
from pystreams.state.overlay import ReadOnlyOverlay
from pystreams.state.store import Store, StoreContext
from pystreams.state.stores.kinds import open_layer, open_store, split_of
from pystreams.state.table import MemoryTable

R = TypeVar("R")

#: By partition of the task's inputs, the offset up to which the stores hold it (exclusive).
Offsets: TypeAlias = Mapping[TopicPartition, int]

#: A reader of many entries checks after each batch of this size whether the task is about to close.
_ENTRIES_AT_ONCE: Final = 1_000


class CommittedAnswer(NamedTuple, Generic[R]):
    """The result of a read, and the offsets of the commit from which it was read."""

    result: R
    offsets: Offsets


class _View:
    """A store as of one commit. It is released when it is neither published nor read."""

    __slots__ = ("offsets", "readers", "retired", "store", "table", "used")

    def __init__(self, store: Store, table: RocksSnapshot | MemoryTable, offsets: Offsets) -> None:
        self.store = store
        self.table = table
        self.offsets = offsets
        self.readers = 0
        #: Whether a reader has used it. If none has, the next commit publishes no other one.
        self.used = False
        self.retired = False

    def release_if_free(self) -> None:
        """Release the view if it is not used any more. This does not wait for the garbage collector, because a snapshot
        keeps its database open."""
        if self.retired and not self.readers:
            self.store.close()
            if isinstance(self.table, RocksSnapshot):
                self.table.close()


class CommittedStores:
    """The views of one task's stores. Only the thread that writes the stores calls ``open``, ``changing``, ``closed``
    and ``close``; any thread may call the other methods. Reads return nothing before ``open`` and after ``close``."""

    def __init__(self) -> None:
        self._makers: dict[str, Callable[[], tuple[Store, RocksSnapshot | MemoryTable]]] = {}
        self._in_memory: set[str] = set()
        self._views: dict[str, _View] = {}
        self._offsets: Offsets = {}
        self._is_open = False
        self._readers = 0
        self._mark = CommitMark()
        #: Held while the tables change, and by readers of a table in memory. A thread that needs both locks takes this
        #: one first, and then the gate.
        self._changing = threading.RLock()
        #: Guards the fields above, for moments only.
        self._fields = threading.RLock()
        #: A condition with the same lock, to wait for new views, and for the last reader to leave. ``with`` on the
        #: condition is slower than on the lock.
        self._gate = threading.Condition(self._fields)

    def add(self, context: StoreContext, layer: Layer, table: RocksTable | MemoryTable) -> None:
        """Add a store of the task, with its layer and its table."""
        name = context.spec.name
        self._makers[name] = _maker(context, layer, table)
        if isinstance(table, MemoryTable):
            self._in_memory.add(name)

    # The thread that writes the stores

    def open(self, offsets: Offsets | None = None) -> None:
        """Permit reads. ``offsets``: those of the last commit; None: unchanged."""
        with self._changing, self._fields:
            self._is_open = True
            self._begin_commit(offsets)

    @contextmanager
    def changing(self, offsets: Offsets | None = None) -> Iterator[None]:
        """A context in which the tables change from one commit to the next. ``offsets`` are those of the next one
        (None: unchanged). If the block fails, reads are not possible any more."""
        with self._changing:
            try:
                yield
                with self._gate:
                    self._begin_commit(offsets)
                    self._gate.notify_all()
            except BaseException:
                with self._gate:
                    self._is_open = False
                    self._end_mark()
                    self._gate.notify_all()
                raise

    @contextmanager
    def closed(self) -> Iterator[None]:
        """A context without reads, in which the database is opened again."""
        was_open = self._is_open
        self.close()
        yield
        if was_open:
            self.open()

    def close(self) -> None:
        """Permit no new reads, and wait for the end of the last one."""
        with self._gate:
            self._is_open = False
            self._end_mark()
            self._gate.notify_all()
            self._gate.wait_for(lambda: not self._readers)
            for view in self._views.values():
                _retire(view)
            self._views.clear()

    def _begin_commit(self, offsets: Offsets | None) -> None:
        """Let readers read the tables as they are now, with these offsets (None: unchanged)."""
        self._end_mark()
        if offsets is not None:
            self._offsets = offsets
        for name, view in list(self._views.items()):
            _retire(view)
            if view.used:
                self._views[name] = self._made(name)
            else:
                del self._views[name]

    def _end_mark(self) -> None:
        """Begin another mark. The caller changes afterwards what readers read: so those who keep answers drop them
        before anybody can read newer ones."""
        self._mark.end()
        self._mark = CommitMark()

    def _made(self, name: str) -> _View:
        return _View(*self._makers[name](), self._offsets)

    # Readers

    def read(self, name: str, read: Callable[[Any], R]) -> CommittedAnswer[R] | None:
        """The result of ``read`` for a store as of the last commit; an iterator is read to its end. None if the task is
        closed, or does not run yet. Raises the errors of ``read``, and ``StateError`` if the task closes meanwhile."""
        return self._read(name, read, waits=True)

    def read_at_once(self, name: str, read: Callable[[Any], R]) -> CommittedAnswer[R] | None:
        """As ``read``, but also None if the reader would have to wait, for example for a commit to be written."""
        return self._read(name, read, waits=False)

    def _read(self, name: str, read: Callable[[Any], R], *, waits: bool) -> CommittedAnswer[R] | None:
        view: _View | None = None
        with self._fields:
            if not self._is_open:
                return None
            self._readers += 1
            if name not in self._in_memory and (view := self._views.get(name)) is not None:
                view.readers += 1
        try:
            if view is None:
                # A commit may be in progress, and must not be read before it is complete.
                if not self._changing.acquire(blocking=waits):
                    return None
                try:
                    if name in self._in_memory:
                        return self._answered(self._current(name), read)
                    with self._fields:
                        view = self._current(name)
                        view.readers += 1
                finally:
                    self._changing.release()
            return self._answered(view, read)
        finally:
            with self._fields:
                self._readers -= 1
                if not self._readers:
                    self._gate.notify_all()
                if view is not None:
                    view.readers -= 1
                    view.release_if_free()

    def _current(self, name: str) -> _View:
        with self._fields:
            view = self._views.get(name)
            if view is None:
                view = self._views[name] = self._made(name)
            return view

    def _answered(self, view: _View, read: Callable[[Any], R]) -> CommittedAnswer[R]:
        view.used = True
        result: Any = read(view.store)
        if isinstance(result, StoreIterator):
            result = self._all_of(view.store.name, result)
        return CommittedAnswer(result, view.offsets)

    def _all_of(self, name: str, entries: StoreIterator[Any, Any]) -> list[Any]:
        found: list[Any] = []
        with entries:
            while some := list(islice(entries, _ENTRIES_AT_ONCE)):
                found += some
                if not self._is_open:
                    raise StateError(
                        f"store {name} was closed while it was read",
                        why="its task ends, or goes to another member",
                        hint="query again in a moment",
                    )
        return found

    def reads_at_once(self, name: str) -> bool:
        """Whether a reader of this store would not have to wait, for example for a commit to be written."""
        if name in self._views and name not in self._in_memory:
            return True
        is_free = self._changing.acquire(blocking=False)
        if is_free:
            self._changing.release()
        return is_free

    @property
    def mark(self) -> CommitMark:
        """An object that stays the same as long as readers read the same content."""
        return self._mark

    @property
    def offsets(self) -> Offsets | None:
        """The offsets of the last commit; None if reads are not possible."""
        with self._fields:
            return self._offsets if self._is_open else None

    def wait(self, reached: Callable[[Offsets], bool], timeout_ms: float) -> bool:
        """Wait for a commit for whose offsets ``reached`` is true. False if the timeout or the task ends first."""
        with self._gate:
            self._gate.wait_for(lambda: not self._is_open or reached(self._offsets), timeout_ms / 1000)
            return self._is_open and reached(self._offsets)


def _retire(view: _View) -> None:
    view.retired = True
    view.release_if_free()


def _maker(
    context: StoreContext, layer: Layer, table: RocksTable | MemoryTable
) -> Callable[[], tuple[Store, RocksSnapshot | MemoryTable]]:
    """A function that makes a view of a store. Its serdes are set up once, at the first view."""
    spec = context.spec
    # Without ``max_entries``, because reads of a view must not change the order of use.
    spec = replace(spec, cached=False, logged=False, max_entries=None)
    spec = replace(spec, key_serde=_SetUpOnce(spec.key_serde), value_serde=_SetUpOnce(spec.value_serde))
    split = split_of(spec)

    def make() -> tuple[Store, RocksSnapshot | MemoryTable]:
        entries: Any = table.view() if isinstance(table, MemoryTable) else RocksSnapshot(table)
        of_view = replace(context, spec=spec, cell=ContextCell(), log=None, cache=None)
        layer_of_view = open_layer(of_view, ReadOnlyOverlay(spec.name, entries, split))
        layer_of_view.continue_as(layer)
        return open_store(of_view, layer_of_view), entries

    return make


class _SetUpOnce(Serde[Any]):
    """A serde that makes each of its functions once, because making one may cost more than a read."""

    def __init__(self, serde: AnySerde) -> None:
        self.immutable = serde.immutable
        self._serde = serde
        self._made: dict[tuple[str, str], Callable[[Any], Any]] = {}

    def __repr__(self) -> str:
        return repr(self._serde)

    def _function(self, kind: str, topic: str) -> Callable[[Any], Any]:
        if (kind, topic) not in self._made:
            self._made[kind, topic] = getattr(self._serde, kind)(topic)
        return self._made[kind, topic]

    def serializer(self, topic: str) -> Callable[[Any], bytes]:
        return self._function("serializer", topic)

    def key_serializer(self, topic: str) -> Callable[[Any], bytes]:
        return self._function("key_serializer", topic)

    def deserializer(self, topic: str) -> Callable[[bytes], Any]:
        return self._function("deserializer", topic)

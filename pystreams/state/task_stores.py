"""All stores of one task: opened together, committed together, restored one by one.

A write goes to its store's overlay and to the changelog. After the broker's commit, ``commit`` writes all overlays and
the offsets to the tables; ``abort`` discards the overlays instead. So a table never has uncommitted entries, and local
state survives a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pystreams.errors import StateCorruptedError, StateError
from pystreams.ids import TaskId
from pystreams.record import ContextCell, RecordBatch
from pystreams.state.age import Age
from pystreams.state.begun import Begun, begin_anew, mark_of
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.committed import CommittedStores, Offsets
from pystreams.state.conversion import bring_into_form
from pystreams.state.departed import delete_departed, departed, finish_departures
from pystreams.state.disk.directory import (
    FORMAT_VERSION,
    OFFSETS_FILE,
    ROCKSDB_DIRECTORY,
    DirectoryLock,
    read_json,
    write_json,
)
from pystreams.state.disk.rocksdb import RocksDatabase, RocksTable
from pystreams.state.disk.rocksdb_memory import RocksResources, shared_resources
from pystreams.state.figures import ROCKSDB_PROPERTIES, BufferFigures, CacheFigures, StoreFigures
from pystreams.state.formats import pack_int64, unpack_int64
from pystreams.state.layers.layer import LAYER_MARKS, AsLogged, Layer
from pystreams.state.layers.time_layer import TimeLayer
from pystreams.state.measured_store import StoreMeasures
from pystreams.state.memory_left import NOTHING_LEFT, MemoryLeft, StoreLeft
from pystreams.state.overlay import Overlay
from pystreams.state.spec import EXPIRING_KINDS, StoreSpec
from pystreams.state.store import LogChange, Store, StoreContext
from pystreams.state.stores.change_buffer import ChangeBuffer
from pystreams.state.stores.kinds import open_layer, open_store, split_of
from pystreams.state.table import MemoryTable
from pystreams.stream_time import NO_TIME

#: The file with the offsets is rewritten when they have advanced by this many records. Source: StateManagerUtil.
OFFSETS_FILE_DELTA = 10_000

#: If a store is still dirty after this many flushes in a row, the flushes would never end.
_FLUSHES_MAX = 1_000


class _Part:
    """One store with its layer and overlay."""

    __slots__ = (
        "_mark_keys",
        "_measures",
        "_written",
        "context",
        "layer",
        "overlay",
        "spec",
        "store",
        "table",
    )

    def __init__(self, context: StoreContext, layer: Layer, measures: StoreMeasures | None) -> None:
        self.context = context
        self.spec = layer.spec
        self._measures = measures
        self.layer = layer
        self.store = self.open(context)
        self.overlay = layer.overlay
        self.table: Any = layer.overlay.table
        #: The keys of ``layer.marks()`` among the database's metadata.
        self._mark_keys = {name: f"{name}/{self.spec.name}".encode() for name in LAYER_MARKS}
        #: The marks as the database has them.
        self._written: dict[bytes, bytes] = {}

    def open(self, context: StoreContext) -> Any:
        """Open the store. Called again when it gets a cache."""
        self.store = open_store(context, self.layer)
        if self._measures is not None:
            self._measures.measure(self.store)
        return self.store

    @property
    def durable(self) -> bool:
        return isinstance(self.table, RocksTable)

    def load(self, stored: Mapping[bytes, bytes]) -> None:
        """Continue from the database's metadata."""
        self._written = {key: stored.get(key, b"") for key in self._mark_keys.values()}
        self.layer.load({name: self._written[key] for name, key in self._mark_keys.items()})

    def marks_to_write(self) -> dict[bytes, bytes]:
        """The layer's metadata that have changed. They may change without a write to the store, because a rising bound
        advances the store's time."""
        now = {self._mark_keys[name]: mark for name, mark in self.layer.marks().items()}
        changed = {key: mark for key, mark in now.items() if self._written.get(key) != mark}
        self._written.update(changed)
        return changed


def _nothing(_: StoreSpec) -> None:
    """The default for ``expired``: expired records are not counted."""


class TaskStores:
    """The stores of one task. Open it with ``TaskStores.open``; only one thread at a time may use it.

    The state opens without a cache: the cache belongs to the thread that attaches it later, and another thread may
    restore the stores before that.
    """

    def __init__(
        self, directory: Path | None, lock: DirectoryLock | None, database: RocksDatabase | None
    ) -> None:
        self.directory = directory
        #: By name, in the order of the specs, in which caches are flushed.
        self.stores: dict[str, Store] = {}
        #: The same stores as of the last commit, for other threads.
        self.committed_stores = CommittedStores()
        self._lock = lock
        self._database = database
        self._parts: dict[str, _Part] = {}
        self._offsets: dict[str, int] = {}
        self._written_offsets: dict[str, int] = {}
        self._metadata: dict[str, bytes | int] = {}
        self._age: Age | None = None
        self._measures: StoreMeasures | None = None
        #: The stores for which the time of their completeness, or of the beginning of their restore, is noted.
        self._stamped: set[str] = set()
        #: Stores on the disk that do not belong to the task any more.
        self._departed: list[str] = []
        self._filling = self._settling = False
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path | None,
        specs: Sequence[StoreSpec],
        *,
        task_id: TaskId | None = None,
        cell: ContextCell,
        log_of: Callable[[str], LogChange | None],
        topic_of: Callable[[str], str] = str,
        resources: RocksResources | None = None,
        expired: Callable[[StoreSpec], None] = _nothing,
        origin: str | None = None,
        beginning: str | None = None,
        begun: Mapping[str, Begun] | None = None,
        age: Age | None = None,
        measures: StoreMeasures | None = None,
        left: MemoryLeft = NOTHING_LEFT,
    ) -> TaskStores:
        """Open the stores that ``specs`` describe.

        ``directory`` is the task's own; None keeps everything in memory. ``task_id`` (default: the directory's name)
        distinguishes tasks that share a cache. ``log_of`` returns the function that appends to a store's changelog,
        None for a store without one. ``topic_of`` returns the topic name for a store's serdes (default: the store's
        name), unless the store is filled from a topic. ``expired`` is called with a store's spec for each write that
        the store drops because it is too late. Local state with another ``origin`` (a log, and after a space the
        hand-over that it follows), or with another ``beginning`` (from before a reset), counts as damaged; None
        accepts any. A store in ``begun`` is emptied if its content has an older beginning. ``age`` empties stores that
        are too old, and has commits write when stores were complete. ``measures`` measures each operation.

        Raises ``StateLockedError`` if the directory is in use, ``StateError`` if it cannot be used or has another
        format, ``StateCorruptedError`` if its files are damaged.
        """
        durable = [spec.name for spec in specs if spec.persistent] if directory is not None else []
        task = str(task_id) if task_id is not None else directory.name if directory is not None else "task"
        lock = database = None
        if directory is not None and durable:
            lock = DirectoryLock(directory)
        state = None
        try:
            if directory is not None and durable:
                if read_json(directory / OFFSETS_FILE) is None:
                    _refuse_unmarked(directory)
                    write_json(directory / OFFSETS_FILE, {"format": FORMAT_VERSION, "offsets": {}})
                database = RocksDatabase(
                    directory / ROCKSDB_DIRECTORY, durable, resources or shared_resources()
                )
            state = cls(directory, lock, database)
            state._age = age
            state._measures = measures
            stored = {} if database is None else database.metadata()
            if database is not None:
                finish_departures(database, stored)
            follows = None if origin is None else origin.encode()
            if database is not None and stored and follows in (None, stored.get(b"origin")):
                begin_anew(database, specs, begun or {}, stored)
                if age is not None:
                    age.begin_anew(database, specs, stored)
            for spec in specs:
                context = StoreContext(
                    spec=spec,
                    topic=spec.source_topic or topic_of(spec.name),
                    cell=cell,
                    log=log_of(spec.name) if spec.logged else None,
                    cache=None,
                    namespace=f"{task}-{spec.name}",
                    expired=partial(expired, spec),
                )
                state._add(context, left.get(spec.name))
            marks = dict(mark_of(*one) for one in (begun or {}).items())
            state._load(stored, {**marks, **state._of_this_time(stored, follows, beginning)})
            return state
        except BaseException:
            if state is not None:
                state.close()
            else:
                if database is not None:
                    database.close()
                if lock is not None:
                    lock.release()
            raise

    def _add(self, context: StoreContext, left: StoreLeft | None) -> None:
        spec, split = context.spec, split_of(context.spec)
        table: Any
        if self._database is not None and spec.persistent:
            table = self._database.tables[spec.name]
        else:
            table = MemoryTable(split, None if left is None else left.entries)
        part = _Part(context, open_layer(context, Overlay(table, split)), self._measures)
        self.stores[spec.name] = part.store
        self._parts[spec.name] = part
        if left is not None:
            part.layer.load(left.marks)
            if left.changelog_offset is not None:
                self._offsets[spec.name] = left.changelog_offset
        self.committed_stores.add(context, part.layer, table)

    def attach(self, cache: ThreadCache) -> None:
        """Attach a thread's cache to the stores that are to be cached; a cache of 0 bytes is not attached. Only that
        thread may use the state from then on. ``stores`` then has new objects for the cached stores."""
        if cache.max_bytes <= 0:
            return
        for name, part in self._parts.items():
            context = replace(part.context, cache=cache)
            if context.cached:
                self.stores[name] = part.open(context)

    def _of_this_time(
        self, stored: Mapping[bytes, bytes], origin: bytes | None, beginning: str | None
    ) -> dict[bytes, bytes]:
        """The marks of the log and of the beginning that the stores follow. Raises ``StateError`` if the local state
        has others: changelog offsets of one log have no meaning in another with the same topic names."""
        if self._database is None:
            return {}
        marks = {}
        if origin is not None:
            if stored and stored.get(b"origin", b"") != origin:
                raise self._of_another_origin(
                    stored.get(b"origin", b"an unknown log").decode(), origin.decode()
                )
            marks[b"origin"] = origin
        if beginning is not None:
            marks[b"beginning"] = beginning.encode()
            if stored.get(b"beginning", beginning.encode()) != beginning.encode():
                raise self._outlived(
                    "the local state of a task is from before the application was reset",
                    "its changelogs were deleted since then, perhaps from another machine",
                    expected=False,
                )
        return marks

    def _load(self, stored: Mapping[bytes, bytes], following: Mapping[bytes, bytes]) -> None:
        """Load the stores; ``following`` are the marks of their log and beginning."""
        database = self._database
        if database is None:
            return
        marks = {name: id for name, id in following.items() if name not in stored}
        for name, part in self._parts.items():
            if not part.durable:
                continue
            mark = part.layer.arrangement.encode()
            found = stored.get(b"layout/" + name.encode())
            if found is not None and found != mark:
                raise self._disagreement(
                    f"store {name} was written in another layout",
                    f"it is {found.decode()} on disk and {mark.decode()} in the topology",
                )
            if found is None:
                marks[b"layout/" + name.encode()] = mark
            offset = stored.get(b"offset/" + name.encode())
            if offset is not None:
                self._offsets[name] = unpack_int64(offset)[0]
            part.load(stored)
        for key, value in stored.items():
            kind, _, name_bytes = key.partition(b"/")
            if kind == b"int":
                self._metadata[name_bytes.decode()] = unpack_int64(value)[0]
            elif kind == b"bytes":
                self._metadata[name_bytes.decode()] = value
            elif kind == b"complete":
                self._stamped.add(name_bytes.decode())
        if marks:
            database.write((), metadata=marks)
        self._departed = departed(database, stored)
        for part in self._parts.values():
            if part.durable:
                bring_into_form(database, part.table, part.layer, stored)

    def _of_another_origin(self, found: str, origin: str) -> StateError:
        why = f"it follows {found}, not {origin}"
        log, _, hand_over = origin.partition(" ")
        if not hand_over or found.partition(" ")[0] != log:
            return self._disagreement("the local state of a task belongs to another log", why)
        # The user has chosen to hand over: a store without a changelog gets nothing, and its old content is obsolete.
        return self._outlived(
            "the local state of a task is from before a backfill's hand-over", why, expected=True
        )

    def _outlived(self, what: str, why: str, *, expected: bool) -> StateCorruptedError:
        """The error for local state from before a decision of the user. It says which stores no topic restores."""
        lost = sorted(name for name, part in self._parts.items() if part.durable and not part.spec.restorable)
        hint = "the task's stores will be deleted and restored from their topics"
        if lost:
            hint += f"; these have none, so their content is lost: {', '.join(lost)}"
        error = StateCorruptedError(what, where=str(self.directory), why=why, hint=hint)
        error.expected = expected and not lost
        return error

    def _disagreement(self, what: str, why: str) -> StateError:
        """The error for local state that does not fit. If no changelog can restore it, only the user can decide."""
        where = str(self.directory)
        if all(part.spec.restorable for part in self._parts.values() if part.durable):
            hint = "the task's stores will be deleted and restored from their changelogs"
            return StateCorruptedError(what, where=where, why=why, hint=hint)
        hint = "a store of this task has no changelog: delete the directory to start with an empty store"
        return StateError(what, where=where, why=why, hint=hint)

    @property
    def uncommitted_bytes(self) -> int:
        """The approximate memory of all writes since the last commit, without the caches."""
        return sum(part.overlay.size_bytes for part in self._parts.values())

    def figures(self) -> Iterator[StoreFigures]:
        """The current figures of each store. Any thread may call this."""
        for part in list(self._parts.values()):
            table, store, cache = part.table, part.store, part.store.cache
            yield StoreFigures(
                part.spec,
                None
                if cache is None
                else CacheFigures(cache.size_bytes, cache.misses, cache.writes, cache.reads),
                BufferFigures(len(store), store.size_bytes) if isinstance(store, ChangeBuffer) else None,
                _properties(table) if isinstance(table, RocksTable) else {},
            )

    def changelog_offset(self, store: str) -> int | None:
        """The changelog offset from which to restore ``store``; None: restore from the beginning."""
        return self._offsets.get(store)

    def metadata(self, name: str) -> bytes | int | None:
        """The value that the last commit stored under ``name``. It is lost with the process if no store is
        persistent."""
        return self._metadata.get(name)

    def flush_caches(self) -> None:
        """Forward and log every cached change: store by store, each in the order of last update.

        A flush forwards records, which may change a store that was flushed before. So the flushes are repeated until
        all caches are clean, because a commit follows. Then stores that log at a commit do so. Raises ``StateError`` if
        the repetition does not end.
        """
        caches = [store.cache for store in self.stores.values() if store.cache is not None]
        for cache in caches:
            cache.flush()
        for _ in range(_FLUSHES_MAX):
            if not any(cache.dirty for cache in caches):
                break
            for cache in caches:
                cache.flush()
        else:
            again = ", ".join(s.name for s in self.stores.values() if s.cache is not None and s.cache.dirty)
            raise StateError(
                f"store {again} is written again whenever its cache is flushed ({_FLUSHES_MAX} times)",
                why="the flushed records reach a step that writes to the same store",
                hint="write only values that have changed, or keep the store without a cache (cached=False)",
            )
        for store in self.stores.values():
            if store.logs_at_commit:
                store.log_held_changes()

    def commit(
        self,
        changelog_offsets: Mapping[str, int],
        metadata: Mapping[str, bytes | int] | None = None,
        input_offsets: Offsets | None = None,
    ) -> None:
        """Make all writes since the last commit durable, with the corresponding changelog offset of each store.

        Call it after the broker's commit, with flushed caches. ``metadata`` is stored beside the offsets;
        ``input_offsets`` are those that the stores contain now, for readers (None: as before). The first commit deletes
        stores that have left the task.
        """
        entries = {
            name: value for name, value in (metadata or {}).items() if self._metadata.get(name) != value
        }
        with self.committed_stores.changing(input_offsets):
            self._write_changes(changelog_offsets, entries)
        self._metadata.update(entries)
        for name, offset in changelog_offsets.items():
            if name in self._parts:
                self._offsets[name] = offset
        if any(
            offset - self._written_offsets.get(name, 0) > OFFSETS_FILE_DELTA
            for name, offset in changelog_offsets.items()
        ):
            self.restore_checkpoint()

    def _write_changes(
        self, changelog_offsets: Mapping[str, int], metadata: Mapping[str, bytes | int]
    ) -> None:
        database, parts = self._database, self._parts
        if database is not None:
            durable = [part for part in parts.values() if part.durable]
            database.write(
                [(part.table, part.overlay.changes) for part in durable if part.overlay.changes],
                [(part.table, *range_) for part in durable if (range_ := part.layer.expiry()) is not None],
                {**self._marks(durable, changelog_offsets, metadata), **self._stamps(changelog_offsets)},
            )
            if self._departed:
                delete_departed(database, self._departed)
                self._departed = []
        for part in parts.values():
            if not part.durable:
                part.table.apply(part.overlay.changes)
                if (range_ := part.layer.expiry()) is not None:
                    part.table.delete_below(range_[1])
            part.overlay.clear()
            part.layer.after_commit()

    def _marks(
        self,
        durable: Sequence[_Part],
        changelog_offsets: Mapping[str, int],
        metadata: Mapping[str, bytes | int],
    ) -> dict[bytes, bytes]:
        marks: dict[bytes, bytes] = {}
        for part in durable:
            name = part.spec.name
            offset = changelog_offsets.get(name)
            if offset is not None and offset != self._offsets.get(name):
                marks[b"offset/" + name.encode()] = pack_int64(offset)
            marks |= part.marks_to_write()
        for name, value in metadata.items():
            if isinstance(value, int):
                marks[b"int/" + name.encode()] = pack_int64(value)
            else:
                marks[b"bytes/" + name.encode()] = value
        return marks

    def _stamps(self, stores: Iterable[str]) -> dict[bytes, bytes]:
        """The metadata that note that stores are complete now, or that their restore begins now."""
        if self._age is None:
            return {}
        durable = [store for store in stores if (part := self._parts.get(store)) is not None and part.durable]
        self._stamped.update(durable)
        return self._age.stamps(durable)

    def fill(self, stores: Iterable[str]) -> None:
        """Prepare these stores for the restore of many records: until ``complete``, writes cost little, and reads a
        lot."""
        filled = [
            store for store in stores if (part := self._parts[store]).durable and part.layer.restores_unread
        ]
        if filled and self._database is not None:
            with self.committed_stores.closed():
                self._database.reopen(filled)
            self._filling = True

    def settled(self) -> bool:
        """Whether ``complete`` would take only a moment. Call it repeatedly until it returns True: meanwhile unsorted
        writes are written to files."""
        if not self._filling:
            return True
        if not self._settling:
            self._settling = True
            self.begin_flush()
        return not self.flushing

    def complete(self) -> None:
        """Note that the stores now hold all records of their changelogs. The time is stored if deletions of keys could
        be missed otherwise (see ``age``)."""
        if self._database is None:
            return
        if self._filling:
            with self.committed_stores.closed():
                self._database.reopen()
            self._filling = self._settling = False
        if stamps := self._stamps(self._parts):
            self._database.write((), metadata=stamps)

    def abort(self) -> None:
        """Discard all writes since the last commit, also in the caches."""
        for part in self._parts.values():
            part.store.abort_cache()
            part.layer.abort()

    def limit_time(self, stream_time_ms: int, seen_ms: int) -> None:
        """Set the stream time of the last commit, and the highest time seen by then, before a restore from changelogs
        that may have later records.

        The later records will be processed again, and their windows must not have expired by then. So window stores
        keep all windows that were live at this time.
        """
        for part in self._parts.values():
            part.layer.limit_time(stream_time_ms, seen_ms)

    def hold(self, emitted: Mapping[str, int]) -> None:
        """Set, before a restore, for each store by its name the time up to which closed windows have been emitted:
        windows that close later are kept, even if they have expired."""
        for name, time_ms in emitted.items():
            part = self._parts.get(name)
            if part is not None and part.spec.by_time:
                part.layer.hold(time_ms - part.spec.window_size_ms)

    def times(self) -> dict[str, int]:
        """The stream time (ms) of each store whose entries expire; a store that has seen nothing has none."""
        times = {
            name: part.layer.time.ms
            for name, part in self._parts.items()
            if isinstance(part.layer, TimeLayer)
        }
        return {name: time for name, time in times.items() if time != NO_TIME}

    def go_on(self, times: Mapping[str, int]) -> None:
        """Continue at the ``times`` of an earlier run, before anything is restored. The remaining entries may not show
        these times, because later entries may have been deleted."""
        for name, time_ms in times.items():
            part = self._parts[name]
            assert isinstance(part.layer, TimeLayer), "only stores whose entries expire have a time"
            part.layer.go_on(time_ms)
            if part.durable and self._database is not None:
                self._database.write((), metadata=part.marks_to_write())

    def restore(self, store: str, batch: RecordBatch) -> None:
        """Apply records of the store's changelog; nothing is logged or forwarded. Applying them twice has no effect.

        The same write sets the changelog offset to ``batch.next_offset``.
        """
        with self.committed_stores.changing():
            self._restore(self._parts[store], batch)
        self._offsets[store] = batch.next_offset

    def _restore(self, part: _Part, batch: RecordBatch) -> None:
        store = part.spec.name
        changes = part.layer.restored_batch(batch)
        if part.durable and self._database is not None:
            marks = {b"offset/" + store.encode(): pack_int64(batch.next_offset)}
            marks |= part.marks_to_write()
            if store not in self._stamped:
                marks |= self._stamps([store])
            self._database.write([(part.table, changes)], metadata=marks)
        else:
            part.table.apply(changes)

    def ingest(self, store: str, files: Iterable[Path]) -> None:
        """Ingest sorted files of a persistent store's table entries. The task must be opened again before use."""
        self._parts[store].table.ingest(files)

    def as_logged(self, store: str, key: bytes, time: int) -> AsLogged | None:
        """See ``Layer.as_logged``. The caches must be flushed before."""
        return self._parts[store].layer.as_logged(key, time)

    def expires(self, store: str) -> bool:
        """Whether the store's entries expire, and its changelog deletes by time."""
        return self._parts[store].spec.kind in EXPIRING_KINDS

    def is_empty(self, store: str) -> bool:
        """Whether nothing was ever committed to the store, or all of it was deleted."""
        entries = self._parts[store].table.walk(b"")
        try:
            return next(entries, None) is None
        finally:
            entries.close()

    def keeps_versions(self, store: str) -> bool:
        """Whether the store's content depends on several records of a key, not only on the last one."""
        return self._parts[store].spec.kind == "versioned"

    def restore_checkpoint(self) -> None:
        """Update the file with the offsets, which other processes read."""
        if self.directory is None or self._database is None:
            return
        offsets = {
            name: self._offsets[name]
            for name, part in self._parts.items()
            if part.durable and name in self._offsets
        }
        if offsets != self._written_offsets:
            write_json(self.directory / OFFSETS_FILE, {"format": FORMAT_VERSION, "offsets": offsets})
            self._written_offsets = offsets

    @property
    def durable_offsets(self) -> dict[str, int]:
        """By store, the changelog offset of its content on the disk; without stores that no topic restores."""
        return {
            name: self._offsets[name]
            for name, part in self._parts.items()
            if part.durable and part.spec.restorable and name in self._offsets
        }

    def begin_flush(self) -> None:
        """Begin to write what RocksDB has in memory to files, so that a checkpoint has less to do."""
        if self._database is not None:
            self._database.begin_flush()

    @property
    def flushing(self) -> bool:
        """Whether the flush that ``begin_flush`` has begun is not done yet."""
        return self._database is not None and self._database.flushing

    def checkpoint(self, path: Path) -> None:
        """Link the files of the database into a new folder of this file system. They hold the last commit, without
        uncommitted entries, and later writes do not change them. Raises ``StateError``."""
        assert self._database is not None, "stores in memory have no files"
        self._database.checkpoint(path)

    def memory_left(self) -> MemoryLeft:
        """The content of the stores in memory as of the last commit, for a task that opens them after ``close``. It is
        without stores that keep more than a table, which are restored instead, and without stores that no topic
        restores, which begin empty."""
        return {
            name: StoreLeft(part.table.entries, part.layer.marks(), self._offsets.get(name))
            for name, part in self._parts.items()
            if isinstance(part.table, MemoryTable) and part.layer.content_in_table and part.spec.restorable
        }

    def close(self) -> None:
        """Close the stores and release the directory. Uncommitted writes are discarded; no cache is flushed."""
        if self._closed:
            return
        self._closed = True
        self.committed_stores.close()
        try:
            for part in self._parts.values():
                part.store.close()
                if isinstance(part.table, MemoryTable):
                    part.table.close(part.spec.name)
            if self._database is not None:
                self._database.close(flush=False)
                self.restore_checkpoint()
        finally:
            if self._lock is not None:
                self._lock.release()

    def wipe(self) -> None:
        """Close the stores and delete them from the disk."""
        lock, self._lock = self._lock, None
        try:
            self.close()
        finally:
            if lock is not None:
                lock.delete()


def _properties(table: RocksTable) -> Mapping[str, int]:
    """The properties of RocksDB; none while the database is opened or closed by its thread."""
    try:
        return table.properties(ROCKSDB_PROPERTIES)
    except StateError:
        return {}


def _refuse_unmarked(directory: Path) -> None:
    if (directory / ROCKSDB_DIRECTORY).exists():
        raise StateCorruptedError(
            "a task's directory has stores, but not the file with their format version",
            where=str(directory / OFFSETS_FILE),
            hint="the stores will be deleted and restored from their changelogs",
        )

"""The RocksDB database of a task, through rocksdict: a column family per store, the default one for metadata."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import rocksdict

from pystreams.errors import StateCorruptedError, StateError, StateLockedError
from pystreams.state.disk.rocksdb_memory import RocksResources

#: rocksdict holds the GIL while it writes a batch, so a larger commit is written in slices of this many entries.
SLICE_ENTRIES = 1000

_PREFIX = "store-"
_MEMTABLE_BYTES = 16 * 1024 * 1024
#: Together they take as much memory as the two of a sorted store.
_UNSORTED_MEMTABLES_MAX = 4
_UNSORTED_MEMTABLE_BYTES = 8 * 1024 * 1024
#: The first write to a store takes this much of the budget for write buffers. RocksDB's default is 1 MiB: 65 stores
#: would exceed the budget with nearly empty buffers, and each commit would write a file.
_ARENA_BYTES = 4 * 1024
_BLOCK_BYTES = 4 * 1024
_BLOOM_BITS_PER_KEY = 10
_INFO_LOG_BYTES = 1024 * 1024
#: The number of threads with which RocksDB opens files. It starts them at each opening: with 16, its default, the
#: opening of a small database takes 1.5 times as long.
_OPENING_THREADS = 4
#: A longer log is not left for the next opening, because reading it would take longer than flushing the memory now.
_LOG_BYTES_MAX = 16 * 1024 * 1024
#: The message with which RocksDB refuses to flush after its background work was cancelled.
_NO_FLUSH = "Shutdown in progress"


class RocksTable:
    """One column family. ``get`` is rocksdict's own method, without a wrapper."""

    __slots__ = ("_database", "family", "get", "handle", "name")

    get: Callable[[bytes], bytes | None]

    def __init__(self, database: RocksDatabase, name: str, family: rocksdict.Rdict, handle: Any) -> None:
        self.name = name
        self._database = database
        self.opened(family, handle)

    def opened(self, family: rocksdict.Rdict, handle: Any) -> None:
        """The database was opened, perhaps again."""
        self.family = family
        self.handle = handle
        self.get = family.get

    def scan(
        self, lower: bytes | None, upper: bytes | None, *, upper_inclusive: bool, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        # The iterator is created now, not at the first read, because it shows the database as of its creation.
        try:
            items = (
                self.family.items(backwards=True, from_key=upper)
                if reverse
                else self.family.items(from_key=lower)
            )
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            _fail(error, "read", self._database.path)
        # rocksdict encodes the bounds of ReadOptions as typed keys, which raw keys never match: check the bounds here.
        bounded = (
            self._down_to(items, lower, upper, upper_inclusive=upper_inclusive)
            if reverse
            else self._up_to(items, lower, upper, upper_inclusive=upper_inclusive)
        )
        self._database.scans.add(bounded)
        return bounded

    def walk(self, lower: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.scan(lower, None, upper_inclusive=True, reverse=False)

    def _up_to(
        self, items: Any, lower: bytes | None, upper: bytes | None, *, upper_inclusive: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        key = lower
        for entry in items:
            key = entry[0]
            if upper is not None and (key > upper or (key == upper and not upper_inclusive)):
                return
            yield entry
        items = None  # see RocksDatabase.write
        _check_end(self.family, key, self._database.path, reverse=False)

    def _down_to(
        self, items: Any, lower: bytes | None, upper: bytes | None, *, upper_inclusive: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        key = upper
        for entry in items:
            key = entry[0]
            if lower is not None and key < lower:
                return
            if key == upper and not upper_inclusive:
                continue
            yield entry
        items = None  # see RocksDatabase.write
        _check_end(self.family, key, self._database.path, reverse=True)

    def refuse(self, error: Exception) -> NoReturn:
        """Raise the error for a failed ``get``."""
        if isinstance(error, StateError):
            raise error
        _fail(error, "read", self._database.path)

    def windows(
        self, key: bytes, lower: bytes, upper: bytes, span: tuple[int, int], *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        return self.scan(lower, upper, upper_inclusive=True, reverse=reverse)

    def ingest(self, files: Iterable[Path]) -> None:
        """Move sorted files (``sorted_files``) into the table."""
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        try:
            for file in files:
                self.family.ingest_external_file([str(file)], options)
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            _fail(error, "write", self._database.path)

    def flush(self) -> None:
        """Begin to write what is in memory to files. Returns at once."""
        self.family.flush(False)

    @property
    def flushing(self) -> bool:
        return bool(self.family.property_int_value("rocksdb.num-immutable-mem-table"))

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        """RocksDB's properties with these names; those that it does not know are left out."""
        try:
            values = {name: self.family.property_int_value(f"rocksdb.{name}") for name in names}
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            _fail(error, "read", self._database.path)
        return {name: value for name, value in values.items() if value is not None}

    def approximate_count(self) -> int:
        return self.family.property_int_value("rocksdb.estimate-num-keys") or 0

    def close(self) -> None:
        """Release the database: it stays locked as long as any handle to it exists."""
        if self.handle is None:
            return
        self.handle = None

        def closed(_: bytes) -> bytes | None:
            raise StateError(f"store {self.name} is closed")

        self.get = closed
        self.family.close()


def _check_end(family: Any, last: bytes | None, path: Path, *, reverse: bool) -> None:
    """Iterators of rocksdict end at a damaged block as at the end of the table. So seek again beyond the last key, and
    check that it is the last. Raises ``StateCorruptedError``."""
    cursor = None
    try:
        cursor = family.iter()
        if last is None:
            cursor.seek_to_last() if reverse else cursor.seek_to_first()
        elif reverse:
            cursor.seek_for_prev(last)
        else:
            cursor.seek(last)
        if last is not None and cursor.valid() and cursor.key() == last:
            cursor.prev() if reverse else cursor.next()
        if not cursor.valid():
            cursor.status()
    except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
        cursor = None  # see RocksDatabase.write
        _fail(error, "read", path)


class RocksDatabase:
    """All stores of one task. Opening raises ``StateCorruptedError`` for damaged files, ``StateLockedError`` if the
    database is open elsewhere, ``StateError`` if the disk cannot be used."""

    def __init__(self, path: Path, stores: Iterable[str], resources: RocksResources) -> None:
        self.path = path
        #: Open iterators. Each keeps the database open, and thereby locked, until it is closed.
        self.scans: weakref.WeakSet[Any] = weakref.WeakSet()
        self.tables: dict[str, RocksTable] = {}
        self._db: Any = None
        self._resources = resources
        self._options = _options(resources)
        try:
            exists = (path / "CURRENT").exists()
            known = rocksdict.Rdict.list_cf(str(path), self._options) if exists else []
            self._families = {name for name in known if name != "default"}
            wanted = list(stores)
            #: The stores that were not in the database before.
            self.created = {store for store in wanted if _PREFIX + store not in self._families}
            # All at once: creating them one by one writes the list of all of them each time.
            self._families.update(_PREFIX + store for store in wanted)
            self._open(wanted, ())
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            with suppress(StateError):
                self.close()
            _fail(error, "open", path)

    def _open(self, stores: Iterable[str], unsorted: Collection[str]) -> None:
        families: dict[str, Any] = dict.fromkeys(self._families, self._options)
        if unsorted:
            unsorting = _unsorted(_options(self._resources))
            families |= {_PREFIX + store: unsorting for store in unsorted}
        self._db = rocksdict.Rdict(str(self.path), self._options, families)
        for store in stores:
            self._open_table(store)

    def reopen(self, unsorted: Collection[str] = ()) -> None:
        """Close the database and open it again, with the same tables. Entries of the ``unsorted`` stores are not sorted
        until they are written to files: writes in any order cost little, but reads a lot. The tables must not be in
        use. Raises the same errors as opening; the database is closed then."""
        self.close()
        try:
            self._open(list(self.tables), unsorted)
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            with suppress(StateError):
                self.close()
            _fail(error, "open", self.path)

    def _open_table(self, store: str) -> None:
        family = _PREFIX + store
        if family not in self._families:
            self._db.create_column_family(family, self._options)
            self._families.add(family)
        opened = self._db.get_column_family(family), self._db.get_column_family_handle(family)
        if store in self.tables:
            self.tables[store].opened(*opened)
        else:
            self.tables[store] = RocksTable(self, store, *opened)

    def unopened(self) -> list[str]:
        """The stores in the database that are not open."""
        stores = (family.removeprefix(_PREFIX) for family in self._families if family.startswith(_PREFIX))
        return sorted(store for store in stores if store not in self.tables)

    def empty(self, store: str) -> None:
        """Delete all entries of a store, even of one that was not opened. Raises the same errors as opening."""
        family = _PREFIX + store
        if family not in self._families:
            return
        opened = self.tables.pop(store, None)
        try:
            if opened is not None:
                opened.close()
            self._db.drop_column_family(family)
            self._families.discard(family)
            if opened is not None:
                self._open_table(store)
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            _fail(error, "write", self.path)

    def copy(self, store: str, to: str) -> None:
        """Copy the entries of a store that is not opened, if there are any, to a store that is."""
        if _PREFIX + store not in self._families:
            return
        self._open_table(store)
        source = self.tables.pop(store)
        try:
            entries = source.walk(b"")
            while some := dict(islice(entries, SLICE_ENTRIES - 1)):
                self.write([(self.tables[to], some)])
        finally:
            source.close()

    def metadata(self) -> dict[bytes, bytes]:
        """All entries that were written as ``metadata``."""
        entries = dict(self._db.items())
        _check_end(self._db, max(entries, default=None), self.path, reverse=False)
        return entries

    def write(
        self,
        changes: Iterable[tuple[RocksTable, Mapping[bytes, bytes | None]]],
        expired: Iterable[tuple[RocksTable, bytes, bytes]] = (),
        metadata: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        """Write changes, deletions of key ranges (end exclusive), and metadata (None deletes). The write is cut into
        slices; the last one has the deletions and metadata. After a crash in between, restoring from the changelog
        writes the same entries again."""
        batch = None
        try:
            batch = rocksdict.WriteBatch(raw_mode=True)
            room = SLICE_ENTRIES
            for table, entries in changes:
                items, left = iter(entries.items()), len(entries)
                while left:
                    batch.set_default_column_family(table.handle)
                    for key, value in islice(items, room):
                        if value is None:
                            del batch[key]
                        else:
                            batch[key] = value
                    room, left = max(0, room - left), max(0, left - room)
                    if not room:
                        self._db.write(batch)
                        batch = rocksdict.WriteBatch(raw_mode=True)
                        room = SLICE_ENTRIES
            batch.set_default_column_family(None)
            for table, lower, upper in expired:
                batch.delete_range(lower, upper, table.handle)
            for name, value in (metadata or {}).items():
                if value is None:
                    batch.delete(name)
                else:
                    batch.put(name, value)
            self._db.write(batch)
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            # A stored exception keeps this frame, whose handles would keep the database open, and so locked.
            batch = None
            _fail(error, "write", self.path)

    def begin_flush(self) -> None:
        """Begin to write what is in memory to files. Returns at once."""
        try:
            for table in self.tables.values():
                table.flush()
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            _fail(error, "write", self.path)

    @property
    def flushing(self) -> bool:
        """Whether entries in memory are still to be written to files."""
        return any(table.flushing for table in self.tables.values())

    def checkpoint(self, path: Path) -> None:
        """Link the files of the database, as of now, into a new folder of the same file system. Entries in memory are
        written to files first; meanwhile nothing else happens in this process: see ``begin_flush``."""
        checkpoint = None
        try:
            checkpoint = rocksdict.Checkpoint(self._db)
            checkpoint.create_checkpoint(str(path))
        except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
            checkpoint = None  # see write
            _fail(error, "copy", self.path)

    def close(self, *, flush: bool = True) -> None:
        """Close iterators, tables and database, which releases the lock. Without ``flush``, entries in memory stay in
        RocksDB's log if there are few: the next opening writes them to files, several times as fast."""
        for scan in list(self.scans):
            scan.close()
        self.scans.clear()
        in_log = not flush and self._leave_in_log()
        closers = [table.close for table in self.tables.values()]
        if self._db is not None:
            closers.append(self._db.close)
            self._db = None
        # Closing flushes memory to disk. If that fails for one handle, the handle is still released, and so are the
        # others.
        failure: Exception | None = None
        for close in closers:
            try:
                close()
            except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
                if not (in_log and _NO_FLUSH in str(error)):
                    failure = failure or error
        if failure is not None:
            _fail(failure, "close", self.path)

    def _leave_in_log(self) -> bool:
        """Prevent any further flush if the log is short. Then all entries are in the log on the disk, also after a
        power failure. False: closing must flush."""
        if self._db is None:
            return False
        try:
            if sum(log.stat().st_size for log in self.path.glob("*.log")) > _LOG_BYTES_MAX:
                return False
            self._db.flush_wal(True)
            self._db.cancel_all_background(True)
        except Exception:  # noqa: BLE001 rocksdict raises nothing more precise
            # RocksDB has just deleted an old log; or there is an error that the flush will meet and report, too.
            return False
        return True


def _options(resources: RocksResources) -> Any:
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(resources.block_cache)
    blocks.set_block_size(_BLOCK_BYTES)
    blocks.set_bloom_filter(_BLOOM_BITS_PER_KEY, False)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_manager(resources.write_buffers)
    options.set_write_buffer_size(_MEMTABLE_BYTES)
    options.set_arena_block_size(_ARENA_BYTES)
    # Only one thread writes to a database, and unsorted stores need that.
    options.set_allow_concurrent_memtable_write(False)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_max_file_opening_threads(_OPENING_THREADS)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(_INFO_LOG_BYTES)
    return options


def _unsorted(options: Any) -> Any:
    """The options of an unsorted store. A write costs about a seventh of a write that sorts, if keys come in no order.
    RocksDB's threads sort when they write to files, which takes longer than filling the memory. So there are more
    memtables, each of them smaller, that may wait for these threads."""
    options.set_memtable_factory(rocksdict.MemtableFactory.vector())
    options.set_write_buffer_size(_UNSORTED_MEMTABLE_BYTES)
    options.set_max_write_buffer_number(_UNSORTED_MEMTABLES_MAX)
    return options


def _fail(error: Exception, doing: str, path: Path) -> NoReturn:
    text = str(error)
    lowered = text.lower()
    where = f"RocksDB in {path}"
    if "lock" in lowered and ("no locks available" in lowered or "temporarily unavailable" in lowered):
        raise StateLockedError(
            f"cannot {doing} a task's stores: the database is in use",
            where=where,
            why=text,
            hint="another process, or a store iterator that was not closed, holds its lock",
        ) from error
    if "no space left" in lowered or "writer has previous error" in lowered:
        raise StateError(
            f"cannot {doing} a task's stores: the disk is full",
            where=where,
            why=text,
            hint="free some space, or set state_dir to a larger disk; no committed data is lost",
        ) from error
    if "too many open files" in lowered:
        raise StateError(
            f"cannot {doing} a task's stores: the process has too many open files",
            where=where,
            why=text,
            hint="raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or run more processes: RocksDB "
            "keeps two or three files open for each store of each task; no committed data is lost",
        ) from error
    if any(mark in lowered for mark in ("corruption", "no such file", "missing", "checksum", "bad magic")):
        raise StateCorruptedError(
            f"cannot {doing} a task's stores: the files are damaged",
            where=where,
            why=text,
            hint="the stores will be deleted and restored from their changelogs",
        ) from error
    raise StateError(f"cannot {doing} a task's stores", where=where, why=text) from error

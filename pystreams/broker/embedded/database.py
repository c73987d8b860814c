"""Connections to the log's SQLite file: opening, transactions, and errors of SQLite as errors of pystreams."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pystreams.broker.embedded.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from pystreams.errors import BrokerError, BrokerUnavailableError, ConfigError, StreamsError
from pystreams.folders import make_folder

#: Large pages, because batches are large blobs, which then span fewer pages.
PAGE_BYTES = 16_384

#: Transactions of other processes take milliseconds; a longer wait means that a process hangs.
BUSY_TIMEOUT_MS = 30_000

#: The maximum size of the write-ahead log's file after a checkpoint.
WAL_BYTES_MAX = 64 << 20


class Database:
    """One connection. Two threads must not use it at the same time, but any thread may close it.

    Transactions are explicit; outside of one, each statement sees the latest commit. Every method raises
    ``BrokerUnavailableError`` if another process locks the file for too long, and ``BrokerError`` for errors of SQLite
    (disk full, file damaged, ...).
    """

    def __init__(self, path: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        #: Held while SQLite works: closing the connection meanwhile would crash the process.
        self._mutex = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=busy_timeout_ms / 1000, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._translated(error) from error
        try:
            self._execute = self._connection.execute
            self.rows("PRAGMA synchronous = NORMAL")
            self.rows(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        except StreamsError:
            self._connection.close()
            raise

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        try:
            with self._mutex:
                return self._execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def row(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a statement, or None."""
        try:
            with self._mutex:
                row: tuple[Any, ...] | None = self._execute(statement, parameters).fetchone()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return row

    def iterate(
        self, statement: str, parameters: Sequence[Any] = ()
    ) -> Generator[tuple[Any, ...], None, None]:
        """Rows one by one. Closing the iterator early stops the reading."""
        try:
            with self._mutex:
                cursor = self._execute(statement, parameters)
            try:
                while (row := self._next_row(cursor)) is not None:
                    yield row
            finally:
                with self._mutex:
                    cursor.close()
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def write(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement. Returns the number of changed rows."""
        try:
            with self._mutex:
                return self._execute(statement, parameters).rowcount
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def write_many(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        try:
            with self._mutex:
                self._connection.executemany(statement, parameters)
        except sqlite3.Error as error:
            raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take the log's write lock now. Commit at the end, or roll back if anything is raised."""
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements inside see the same state of the log."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    def data_version(self) -> int:
        """A number that changes when another connection commits. Takes 3.5 µs."""
        try:
            with self._mutex:
                version: int = self._execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return version

    def close(self) -> None:
        """Wait for another thread's current statement, and close the connection."""
        with self._mutex:
            self._connection.close()

    def _roll_back(self) -> None:
        try:
            with self._mutex:
                # After some errors, such as a full disk, SQLite has already rolled back.
                if self._connection.in_transaction:
                    self._connection.rollback()
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _next_row(self, cursor: sqlite3.Cursor) -> tuple[Any, ...] | None:
        with self._mutex:
            row: tuple[Any, ...] | None = cursor.fetchone()
            return row

    def _translated(self, error: sqlite3.Error) -> StreamsError:
        # The low byte of an extended code is the primary code.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = f"embedded log {self.path}"
        if isinstance(error, sqlite3.ProgrammingError):
            return BrokerError("The embedded log was used after it was closed", where=where, why=str(error))
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BrokerUnavailableError(
                "The embedded log is locked by another process",
                where=where,
                why=f"the write lock was not free within {self._busy_timeout_ms / 1000:g} s",
                hint="close tools with an open transaction on this file (an sqlite3 shell?), then try again",
            )
        # If shared memory cannot grow, SQLite reports an I/O error.
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(self.path)):
            return BrokerError(
                "The disk is full; nothing of this transaction was written",
                where=where,
                why=str(error),
                hint="free space on the disk and start again: no committed data is lost",
            )
        what, hint = _WHAT.get(
            code, ("The embedded log failed", "see the reason; the log is a plain SQLite file")
        )
        kind = ConfigError if code in _CONFIG_ERRORS else BrokerError
        return kind(what, where=where, why=str(error), hint=hint)


def _is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < PAGE_BYTES


_OTHER_PATH = "give another path for the embedded log (embedded_log)"
_WHAT = {
    sqlite3.SQLITE_NOTADB: ("The file is not an SQLite database", _OTHER_PATH),
    sqlite3.SQLITE_CANTOPEN: (
        "The embedded log cannot be opened",
        "check the path's directory and permissions",
    ),
    sqlite3.SQLITE_READONLY: (
        "The embedded log cannot be written to",
        "check the permissions of file and directory",
    ),
    sqlite3.SQLITE_PERM: (
        "The embedded log cannot be accessed",
        "check the permissions of file and directory",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "The embedded log's file is damaged",
        "restore it from a copy, or salvage it with the sqlite3 shell's .recover",
    ),
    sqlite3.SQLITE_IOERR: (
        "The disk failed under the embedded log; nothing of this transaction was written",
        "check the disk, its free space and quota, then start again",
    ),
    sqlite3.SQLITE_TOOBIG: ("A record is larger than SQLite can hold", "keep records below 1 GB"),
}
_CONFIG_ERRORS = frozenset(
    {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
)


def lock_directory(path: Path) -> Path:
    """The directory of a log's lock files."""
    return path.with_name(path.name + ".locks")


def prepare(path: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> int:
    """Create the log if it does not exist, and check that this version can read it. Returns its id.

    Raises ``ConfigError`` if the path cannot hold a log, or has another kind of file or a newer log.
    """
    locks = lock_directory(path)
    try:
        make_folder(locks)
        # If two processes create the same log at once, one waits for the other.
        lock = os.open(locks / "create", os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise ConfigError(
            "The embedded log cannot be created",
            where=f"embedded log {path}",
            why=str(error),
            hint="give a path in a directory that you may write to (embedded_log)",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _create_file(path)
        database = Database(path, busy_timeout_ms)
        try:
            _prepare(database)
            return _log_id(database)
        finally:
            database.close()
    finally:
        os.close(lock)


def _create_file(path: Path) -> None:
    """Create the file if it is missing: SQLite would let every user read it. SQLite gives its other files the mode of
    this one."""
    if not path.exists():
        # If this fails, SQLite fails, too, and its error is translated.
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o660))


def _prepare(database: Database) -> None:
    where = f"embedded log {database.path}"
    application_id = database.rows("PRAGMA application_id")[0][0]
    if application_id == APPLICATION_ID:
        version = database.rows("PRAGMA user_version")[0][0]
        if version != SCHEMA_VERSION:
            raise ConfigError(
                f"The embedded log has schema version {version}, but this pystreams supports version {SCHEMA_VERSION}",
                where=where,
                why="another version of pystreams wrote it",
                hint=f"use that version, or {_OTHER_PATH}",
            )
        return
    if application_id != 0 or database.row("SELECT 1 FROM sqlite_master") is not None:
        raise ConfigError(
            "The file is an SQLite database, but not an embedded log",
            where=where,
            hint=_OTHER_PATH,
        )
    database.rows(f"PRAGMA page_size = {PAGE_BYTES}")
    database.rows("PRAGMA journal_mode = WAL")
    with database.transaction():
        for statement in TABLES.split(";"):
            database.rows(statement)
        database.rows(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.rows(f"PRAGMA application_id = {APPLICATION_ID}")


def _log_id(database: Database) -> int:
    """The log's id, created once. This also checks that the log is writable."""
    with database.transaction():
        database.write("INSERT OR IGNORE INTO log_properties VALUES ('log_id', abs(random()))")
        return int(database.rows("SELECT value FROM log_properties WHERE name = 'log_id'")[0][0])

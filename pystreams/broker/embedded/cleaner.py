"""Retention and compaction, in slices short enough to run after a commit.

Only one process cleans at a time (a lock file). A sweep covers all partitions; each of its slices is one transaction
and leaves a valid log. If the process is killed, the next sweep does the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path

from pystreams.broker.embedded import log
from pystreams.broker.embedded.columns import Columns, decode, decode_keys, encode
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.file_lock import FileLock
from pystreams.broker.embedded.topic_config import TopicConfig
from pystreams.broker.embedded.topics import load_topics
from pystreams.clock import Clock
from pystreams.errors import BrokerError
from pystreams.record import NO_HEADERS, Headers

_logger = logging.getLogger(__name__)

#: The time from the end of one sweep to the start of the next.
SWEEP_INTERVAL_MS = 15_000

#: After each slice there is a pause of at least this many times its duration: so cleaning takes at most a tenth of the
#: time.
PAUSE_RATIO = 9

#: The maximum rows and bytes of one slice.
SLICE_ROWS = 128
SLICE_BYTES = 1 << 20

#: The maximum number of keys that one pass of compaction remembers; more dirty keys need more passes.
PASS_KEYS_MAX = 500_000


class Cleaner:
    """Sweeps the partitions of a log over its owner's connection, between the owner's transactions."""

    def __init__(self, database: Database, clock: Clock, locks: Path) -> None:
        self._database = database
        self._clock = clock
        self._lock_path = locks / "cleaner"
        self._sweep: Generator[None, None, None] | None = None
        self._next_ms = clock.monotonic_ms() + SWEEP_INTERVAL_MS

    def maybe_clean(self) -> None:
        """Run one slice if it is due. Never raises errors of the log, because it is called after a successful
        commit."""
        began_ms = self._clock.monotonic_ms()
        if began_ms < self._next_ms:
            return
        if self._sweep is None:
            self._sweep = self.sweep()
        pause_ms = SWEEP_INTERVAL_MS
        try:
            next(self._sweep)
            pause_ms = 0
        except StopIteration:
            self._sweep = None
        except BrokerError as error:
            _logger.warning("the cleaning of the log is postponed: %s", error)
            self.close()
        now_ms = self._clock.monotonic_ms()
        self._next_ms = now_ms + max(pause_ms, PAUSE_RATIO * (now_ms - began_ms))

    def close(self) -> None:
        """Stop the present sweep."""
        if self._sweep is not None:
            self._sweep.close()
            self._sweep = None

    def sweep(self, *, force: bool = False) -> Generator[None, None, None]:
        """Clean all partitions once; yields after each slice. ``force`` compacts regardless of the dirty ratio."""
        lock = FileLock(self._lock_path)
        if not lock.acquire():
            return
        try:
            for topic in load_topics(self._database).values():
                for partition_id in topic.partition_ids:
                    if topic.config.compacts:
                        yield from self._compact(partition_id, topic.config, force)
                    if topic.config.deletes:
                        yield from self._expire(partition_id, topic.config)
        finally:
            lock.release()

    def _expire(self, partition_id: int, config: TopicConfig) -> Generator[None, None, None]:
        """Delete the oldest batches whose latest record is older than the retention, or that exceed the size limit."""
        while True:
            with self._database.transaction():
                if not self._expire_slice(partition_id, config):
                    return
            yield

    def _expire_slice(self, partition_id: int, config: TopicConfig) -> bool:
        row = self._database.row("SELECT byte_count FROM partitions WHERE partition_id = ?", (partition_id,))
        if row is None:
            return False
        excess = row[0] - config.retention_bytes if config.retention_bytes >= 0 else 0
        oldest_kept_ms = self._clock.now_ms() - config.retention_ms
        new_start = None
        for last_offset, byte_count, max_timestamp in self._database.rows(
            "SELECT last_offset, byte_count, max_timestamp FROM batches WHERE partition_id = ?"
            " ORDER BY base_offset LIMIT ?",
            (partition_id, SLICE_ROWS),
        ):
            # Like Kafka with segments: a batch is deleted only if at least the size limit remains.
            too_much = excess >= byte_count > 0
            too_old = config.retention_ms >= 0 and max_timestamp < oldest_kept_ms
            if not (too_much or too_old):
                break
            excess -= byte_count
            new_start = last_offset + 1
        if new_start is None:
            return False
        log.delete_before(self._database, partition_id, new_start, SLICE_ROWS)
        return True

    def _compact(self, partition_id: int, config: TopicConfig, force: bool) -> Generator[None, None, None]:
        """Compact a partition in passes with a limited number of dirty keys. With ``force`` even a clean partition gets
        one pass, which removes tombstones that are old enough."""
        dirty_from, dirty_to = self._dirty_range(partition_id, config)
        clean_to = dirty_from
        if not (force or self._is_worth_it(partition_id, dirty_from, dirty_to, config)):
            return
        while True:
            latest: dict[bytes | None, int] = {}
            while dirty_from < dirty_to and len(latest) < PASS_KEYS_MAX:
                dirty_from = self._note_keys(partition_id, dirty_from, dirty_to, latest)
                yield
            position = 0
            while position < dirty_from:
                with self._database.transaction():
                    position = self._rewrite_slice(
                        partition_id, position, dirty_from, latest, clean_to, config
                    )
                yield
            with self._database.transaction():
                self._database.write(
                    "UPDATE partitions SET clean_offset = max(clean_offset, ?) WHERE partition_id = ?",
                    (dirty_from, partition_id),
                )
            yield
            if dirty_from >= dirty_to:
                return

    def _dirty_range(self, partition_id: int, config: TopicConfig) -> tuple[int, int]:
        """The offsets (from, to) that are not compacted yet and may be compacted now."""
        row = self._database.row(
            "SELECT clean_offset, max(last_offset) + 1 FROM partitions LEFT JOIN batches"
            " ON batches.partition_id = partitions.partition_id AND base_offset >= clean_offset AND appended_ms <= ?"
            " WHERE partitions.partition_id = ?",
            (self._clock.now_ms() - config.min_compaction_lag_ms, partition_id),
        )
        # All are None if the partition was deleted meanwhile.
        clean_offset, dirty_to = row or (None, None)
        return clean_offset or 0, max(clean_offset or 0, dirty_to or 0)

    def _is_worth_it(self, partition_id: int, dirty_from: int, dirty_to: int, config: TopicConfig) -> bool:
        row = self._database.row(
            "SELECT sum(batches.byte_count), partitions.byte_count FROM partitions JOIN batches USING (partition_id)"
            " WHERE partition_id = ? AND base_offset >= ? AND base_offset < ?",
            (partition_id, dirty_from, dirty_to),
        )
        dirty_bytes, all_bytes = row or (None, 0)
        return dirty_bytes is not None and dirty_bytes >= all_bytes * config.min_dirty_ratio

    def _note_keys(self, partition_id: int, start: int, end: int, latest: dict[bytes | None, int]) -> int:
        """Remember the last offset of each key in a slice from ``start``. Returns the start of the next slice."""
        rows = self._slice(partition_id, start, end)
        for base_offset, _, _, data in rows:
            keys, offsets = decode_keys(data, base_offset)
            latest.update(zip(keys, offsets, strict=True))
        return rows[-1][1] + 1 if rows else end

    def _rewrite_slice(
        self,
        partition_id: int,
        start: int,
        end: int,
        latest: dict[bytes | None, int],
        clean_to: int,
        config: TopicConfig,
    ) -> int:
        """Remove outdated records from some batches and merge small ones. Returns the start of the next slice.

        The first compaction removes the records that a tombstone deletes. So the time for which readers can still see
        the tombstone starts only then.
        """
        rows = self._slice(partition_id, start, end)
        if not rows:
            return end
        now_ms = self._clock.now_ms()
        kept = _Survivors(latest, now_ms - config.delete_retention_ms)
        renewed = False
        for base_offset, last_offset, appended_ms, data in rows:
            columns, first_time = decode(data), base_offset >= clean_to
            renewed = renewed or (first_time and None in columns.values)
            kept.add(columns, range(base_offset, last_offset + 1), now_ms if first_time else appended_ms)
        next_start: int = rows[-1][1] + 1
        batches = kept.rows(partition_id)
        if kept.dropped or renewed or len(batches) < len(rows):
            before = sum(len(data) for _, _, _, data in rows)
            self._database.write(
                "DELETE FROM batches WHERE partition_id = ? AND base_offset BETWEEN ? AND ?",
                (partition_id, rows[0][0], rows[-1][0]),
            )
            log.insert(self._database, batches)
            self._database.write(
                "UPDATE partitions SET byte_count = byte_count + ? WHERE partition_id = ?",
                (sum(len(row[-1]) for row in batches) - before, partition_id),
            )
        return next_start

    def _slice(self, partition_id: int, start: int, end: int) -> list[tuple[int, int, int, bytes]]:
        """A limited number of batches from ``start`` to before ``end``: base, last offset, append time, columns."""
        rows: list[tuple[int, int, int, bytes]] = []
        size = 0
        statement = (
            "SELECT base_offset, last_offset, appended_ms, columns FROM batches"
            " WHERE partition_id = ? AND base_offset >= ? AND base_offset < ? ORDER BY base_offset LIMIT ?"
        )
        for row in self._database.iterate(statement, (partition_id, start, end, SLICE_ROWS)):
            rows.append((row[0], row[1], row[2], row[3]))
            size += len(row[3])
            if size >= SLICE_BYTES:
                break
        return rows


class _Survivors:
    """The records of consecutive batches that compaction keeps."""

    def __init__(self, latest: dict[bytes | None, int], tombstones_before_ms: int) -> None:
        self._latest = latest
        self._tombstones_before_ms = tombstones_before_ms
        self._kept: list[tuple[bytes | None, bytes | None, int, int, Headers]] = []
        self._appended_ms = 0
        self.dropped = 0

    def add(self, columns: Columns, consecutive: range, appended_ms: int) -> None:
        latest = self._latest
        keep_tombstones = appended_ms > self._tombstones_before_ms
        offsets = columns.offsets or consecutive
        headers = columns.headers or [NO_HEADERS] * len(columns.values)
        before = len(self._kept)
        for key, value, timestamp, offset, record_headers in zip(
            columns.keys, columns.values, columns.timestamps, offsets, headers, strict=True
        ):
            # If the key is not in this pass's part of the log, there is no later record of it there.
            if (key is not None and latest.get(key, -1) > offset) or (value is None and not keep_tombstones):
                self.dropped += 1
            else:
                self._kept.append((key, value, timestamp, offset, record_headers))
        if len(self._kept) > before:
            self._appended_ms = max(self._appended_ms, appended_ms)

    def rows(self, partition_id: int) -> list[tuple[int, int, int, int, int, int, int, bytes]]:
        """The batches to write, as rows of the table."""
        if not self._kept:
            return []
        keys, values, timestamps, offsets, headers = (
            list(column) for column in zip(*self._kept, strict=True)
        )
        columns = Columns(keys, values, timestamps, offsets, headers if any(headers) else None)
        rows = []
        start = 0
        for count, max_timestamp, data in encode(columns):
            base, last = offsets[start], offsets[start + count - 1]
            rows.append((partition_id, base, last, count, len(data), max_timestamp, self._appended_ms, data))
            start += count
        return rows

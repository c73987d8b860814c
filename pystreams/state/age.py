"""Empties stores whose local content is so old that deletions may have been missed.

A compacted topic keeps the record that deletes a key (a tombstone) only for ``delete.retention.ms``. Local content that
is older would keep the key for ever, because the later records of the topic do not include the tombstone any more. So
each store has, beside its content, the last time at which it was known to be complete, or at which its restore from the
beginning began. If that is longer ago than the topic keeps tombstones, it is restored from the beginning. Kafka Streams
has this gap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pystreams.clock import Clock
from pystreams.state.begun import marks_of
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.formats import pack_int64, unpack_int64
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

_COMPLETE: Final = b"complete/"


class Age:
    """Compares the times of stores with the retention of tombstones in the topics from which they are restored."""

    def __init__(self, clock: Clock, kept_ms: Callable[[str], int | None]) -> None:
        """``kept_ms`` returns for a store, by its name, how long (ms) its topic keeps tombstones; None: the topic is
        not compacted. It is called only for content that is not new, and may raise the errors of the log."""
        self._clock = clock
        self._kept_ms = kept_ms

    def stamps(self, stores: Iterable[str]) -> dict[bytes, bytes]:
        """The metadata entries of stores that are complete now, or whose restore begins now."""
        now = pack_int64(self._clock.now_ms())
        return {_COMPLETE + store.encode(): now for store in stores}

    def begin_anew(
        self, database: RocksDatabase, specs: Sequence[StoreSpec], stored: dict[bytes, bytes]
    ) -> None:
        """Empty the stores that are too old. ``stored`` is the database's metadata, and is updated with it."""
        for spec in specs:
            complete = stored.get(_COMPLETE + spec.name.encode())
            if complete is None or not (spec.persistent and spec.restorable):
                continue
            age_ms = self._clock.now_ms() - unpack_int64(complete)[0]
            kept_ms = self._kept_ms(spec.name) if age_ms > 0 else None
            if kept_ms is None or age_ms <= kept_ms:
                continue
            # A store without an offset is empty, and would be restored from the beginning anyway.
            if b"offset/" + spec.name.encode() in stored:
                log.warning(
                    "store %s is restored from the beginning: its local content is %.1f h old, and deletions are kept"
                    " for %.1f h (delete.retention.ms of its topic)",
                    spec.name,
                    age_ms / 3_600_000,
                    kept_ms / 3_600_000,
                )
            # If the process is killed meanwhile, the next start finds the old time, and does this again.
            marks = list(marks_of(spec.name, stored))
            database.write((), metadata=dict.fromkeys(marks))
            database.empty(spec.name)
            for mark in marks:
                del stored[mark]
            stamps = self.stamps([spec.name])
            database.write((), metadata=stamps)
            stored |= stamps

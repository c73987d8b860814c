"""Empties stores whose local content is so old that deletions may have been missed.

A compacted topic keeps the record that deletes a key (a tombstone) for ``delete.retention.ms`` only. Content that was
complete before that would keep the key for ever: the records that follow it do not say any more that the key is gone.
So beside the content of each store is the last time at which it was known to be complete, or at which its restore from
the beginning began, and past that age it is restored from the beginning. Kafka Streams has this gap.
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
    """Knows the time, and how long the topics that stores are restored from keep tombstones."""

    def __init__(self, clock: Clock, kept_ms: Callable[[str], int | None]) -> None:
        """``kept_ms`` gives that for a store by its name; None: its topic is not compacted. Called only for content
        that is not new. Raises what asking the log raises."""
        self._clock = clock
        self._kept_ms = kept_ms

    def stamps(self, stores: Iterable[str]) -> dict[bytes, bytes]:
        """The metadata entries of stores that are complete now, or are begun with."""
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
            # If the process is killed in between, the old time makes the next start do this again.
            marks = list(marks_of(spec.name, stored))
            database.write((), metadata=dict.fromkeys(marks))
            database.empty(spec.name)
            for mark in marks:
                del stored[mark]
            stamps = self.stamps([spec.name])
            database.write((), metadata=stamps)
            stored |= stamps

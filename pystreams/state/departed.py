"""Deletes the local content of stores that have left a task: they were removed from the topology, are kept in memory
now, or belong to another sub-topology. The same applies to global stores, which are the stores of one special task.

This happens at the first commit with the new topology. If the old version is started again, it restores the stores from
their topics. Content that no topic restores stays: it is deleted only when the user has accepted its loss (``begun``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pystreams.ids import TopicPartition
from pystreams.state.disk.rocksdb import RocksDatabase

log = logging.getLogger(__name__)

#: The prefix of the entry that exists while a store is being deleted.
_DEPARTING: Final = b"departing/"
#: The prefix of the entries of a global store: the offsets up to which it holds its topic's partitions.
_POSITION: Final = "position"
#: Entries with these prefixes do not describe the content of a store.
_OF_TASK: Final = b"int", b"bytes", b"begun"


def position_name(store: str, partition: TopicPartition) -> str:
    """The name under which a global store's position in a partition of its topic is committed."""
    return f"{_POSITION}/{store}/{partition.topic}/{partition.partition}"


def departed(database: RocksDatabase, stored: Mapping[bytes, bytes]) -> list[str]:
    """The stores with content on the disk that were not opened, and that a topic restores. ``stored`` is the database's
    metadata."""
    restored = {key.removeprefix(b"offset/") for key in stored if key.startswith(b"offset/")}
    restored |= {store for key in stored if (store := _global_store(key)) is not None}
    return [store for store in database.unopened() if store.encode() in restored]


def delete_departed(database: RocksDatabase, stores: Sequence[str]) -> None:
    """Delete the content of these stores. Raises ``StateError``."""
    stored = database.metadata()
    for store in stores:
        # If the process is killed before the last step, ``finish_departures`` does the rest.
        departing = _DEPARTING + store.encode()
        database.write((), metadata={**dict.fromkeys(_marks(store, stored)), departing: b""})
        database.empty(store)
        database.write((), metadata={departing: None})
    log.info("stores that have left the topology are deleted from %s: %s", database.path, ", ".join(stores))


def finish_departures(database: RocksDatabase, stored: dict[bytes, bytes]) -> None:
    """Finish deletions that a killed process has begun, and delete offsets of content that does not exist any more:
    after a power failure, the deletion may be on the disk, and earlier writes may not. Call it before the stores are
    used. ``stored`` is the database's metadata, and is updated with it."""
    changes: dict[bytes, bytes | None] = {}
    for departing in [key for key in stored if key.startswith(_DEPARTING)]:
        database.empty(departing.removeprefix(_DEPARTING).decode())
        changes[departing] = None
    for store in database.created:
        changes.update(dict.fromkeys(_marks(store, stored)))
    if changes:
        database.write((), metadata=changes)
    for key in changes:
        del stored[key]


def _marks(store: str, stored: Iterable[bytes]) -> Iterable[bytes]:
    """The metadata entries that describe the content of a store."""
    for key in stored:
        kind, _, name = key.partition(b"/")
        if (name == store.encode() and kind not in _OF_TASK) or _global_store(key) == store.encode():
            yield key


def _global_store(key: bytes) -> bytes | None:
    """The global store whose position an entry holds; None for other entries."""
    kind, _, name = key.partition(b"/")
    what, _, of = name.partition(b"/")
    return of.partition(b"/")[0] if kind == b"int" and what == _POSITION.encode() else None

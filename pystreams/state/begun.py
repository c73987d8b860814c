"""Tells the content that a store has from what lies on a disk from before: its content began anew, or was another's.

Each machine finds out when it opens a task: a mark beside the store says which beginning it follows. Who is killed in
between finds the mark missing, and does it again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

#: What the metadata of a task's stores has for each of them.
_OF_CONTENT: Final = (b"offset/", b"layer/", b"layout/", b"form/", b"converting/")


class Begun(NamedTuple):
    """``id`` names a beginning; ``was`` is the name that the content had until then, empty if there was none."""

    id: str
    was: str = ""


def mark_of(store: str, begun: Begun) -> tuple[bytes, bytes]:
    """The metadata that says which beginning a store follows."""
    return b"begun/" + store.encode(), begun.id.encode()


def begin_anew(
    database: RocksDatabase,
    specs: Sequence[StoreSpec],
    begun: Mapping[str, Begun],
    stored: dict[bytes, bytes],
) -> None:
    """Empty the stores that follow an older beginning; one that no topic restores takes over what lies under its former
    name. ``stored`` is the database's metadata, and changed with it."""
    by_name = {spec.name: spec for spec in specs if spec.persistent}
    # Those that are gone last: others may take their content over.
    for store in sorted(begun, key=lambda name: name not in by_name):
        one = begun[store]
        name, id = mark_of(store, one)
        if stored.get(name) == id:
            continue
        changes: dict[bytes, bytes | None] = dict.fromkeys(_marks(store, stored))
        database.write((), metadata=changes)
        database.empty(store)
        spec = by_name.get(store)
        if spec is not None and one.was and not spec.restorable:
            database.copy(one.was, store)
            log.info("store %s has on this disk what %s had", store, one.was)
            for mark in _marks(one.was, stored):
                kind = mark.partition(b"/")[0]
                changes[kind + b"/" + store.encode()] = stored[mark]
        changes[name] = id
        database.write((), metadata=changes)
        for mark, value in changes.items():
            if value is None:
                stored.pop(mark, None)
            else:
                stored[mark] = value


def _marks(store: str, stored: Mapping[bytes, bytes]) -> Iterator[bytes]:
    return (kind + store.encode() for kind in _OF_CONTENT if kind + store.encode() in stored)

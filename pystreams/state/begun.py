"""Detects local state from before the store's content was reset or replaced, and removes it.

Each machine does so when it opens a task: a mark beside a store identifies the reset or replacement after which the
store's content began. If the process is killed meanwhile, the mark is missing, and the next start repeats the work.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

#: The prefixes of a store's metadata entries.
_OF_CONTENT: Final = (b"offset/", b"layer/", b"seen/", b"restored/", b"layout/", b"form/", b"converting/")


class Begun(NamedTuple):
    """``id`` identifies a beginning; ``was`` is the former name of the content, empty if it had none."""

    id: str
    was: str = ""


def mark_of(store: str, begun: Begun) -> tuple[bytes, bytes]:
    """The metadata entry that names the beginning of a store's content."""
    return b"begun/" + store.encode(), begun.id.encode()


def begin_anew(
    database: RocksDatabase,
    specs: Sequence[StoreSpec],
    begun: Mapping[str, Begun],
    stored: dict[bytes, bytes],
) -> None:
    """Empty the stores that follow an older beginning. A store that cannot be restored from a topic takes over the
    content under its former name. ``stored`` is the database's metadata, and is updated with it."""
    by_name = {spec.name: spec for spec in specs if spec.persistent}
    # Removed stores come last, because other stores may take over their content.
    for store in sorted(begun, key=lambda name: name not in by_name):
        one = begun[store]
        name, id = mark_of(store, one)
        if stored.get(name) == id:
            continue
        changes: dict[bytes, bytes | None] = dict.fromkeys(marks_of(store, stored))
        database.write((), metadata=changes)
        database.empty(store)
        spec = by_name.get(store)
        if spec is not None and one.was and not spec.restorable:
            database.copy(one.was, store)
            log.info("store %s takes over the local content of %s", store, one.was)
            for mark in marks_of(one.was, stored):
                kind = mark.partition(b"/")[0]
                changes[kind + b"/" + store.encode()] = stored[mark]
        changes[name] = id
        database.write((), metadata=changes)
        for mark, value in changes.items():
            if value is None:
                stored.pop(mark, None)
            else:
                stored[mark] = value


def marks_of(store: str, stored: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The metadata entries that describe a store's content."""
    return (kind + store.encode() for kind in _OF_CONTENT if kind + store.encode() in stored)

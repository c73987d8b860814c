"""Converts the values of a persistent store to another form, after a change of a setting or of the program.

This happens when the store is opened, some entries at a time; each write also stores the progress, so that the
conversion continues after a crash. Java converts each entry when it is next written
(RocksDBTimestampedStoreWithHeaders, RocksDBMigratingWindowStoreWithHeaders, RocksDBMigratingSessionStoreWithHeaders),
and refuses the reverse conversion.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from typing import Final

from pystreams.state.disk.rocksdb import SLICE_ENTRIES, RocksDatabase, RocksTable
from pystreams.state.layers.layer import Layer
from pystreams.state.spec import value_form
from pystreams.state.value_forms import FORMS, ValueForm

log = logging.getLogger(__name__)

#: A write of at most this many entries is atomic.
_ENTRIES: Final = SLICE_ENTRIES - 1
#: Separates a form and the key of the last converted entry.
_BETWEEN: Final = b"\x00"
#: The timestamp of values without one. Source: HeadersBytesStore.convertFromPlainToHeaderFormat.
_NO_TIME: Final = -1


def bring_into_form(
    database: RocksDatabase, table: RocksTable, layer: Layer, stored: Mapping[bytes, bytes]
) -> None:
    """Convert all values that do not have the layer's form yet. ``stored`` is the database's metadata.

    Raises ``StateError`` if the disk cannot be used, ``StateCorruptedError`` for values that cannot be read.
    """
    spec = layer.spec
    name = spec.name.encode()
    form_mark, progress_mark = b"form/" + name, b"converting/" + name
    found = value_form(spec.kind, headers=False)
    if form_mark in stored:
        found = FORMS[stored[form_mark].decode()]
    target, _, last = stored.get(progress_mark, b"").partition(_BETWEEN)
    # A conversion that has begun is finished first, even if another form is wanted now.
    steps = [(FORMS[target.decode()], last)] if target else []
    if (steps[-1][0] if steps else found) is not layer.form:
        steps.append((layer.form, b""))
    for to, after in steps:
        count = 0
        entries = table.scan(after or None, None, upper_inclusive=False, reverse=False)
        while some := list(islice(entries, _ENTRIES)):
            changes = {
                key: _converted(value, found, to)
                for key, value in some
                if key != after and not layer.is_index(key)
            }
            progress = {progress_mark: to.name.encode() + _BETWEEN + some[-1][0]}
            database.write([(table, changes)], metadata=progress)
            count += len(changes)
        database.write((), metadata={form_mark: to.name.encode(), progress_mark: b""})
        if count:
            log.info("store %s: %d values converted from %s to %s", spec.name, count, found.name, to.name)
        found = to


def _converted(stored: bytes, was: ValueForm, to: ValueForm) -> bytes:
    value, timestamp, headers = was.parts(stored)
    return to.to_stored(value, _NO_TIME if timestamp is None else timestamp, headers)

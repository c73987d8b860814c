"""What a versioned store shows that was given the records of a changelog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pystreams.record import ContextCell, RecordBatch
from pystreams.serde import BYTES
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.versioned import VersionedStore
from pystreams.state.task_stores import TaskStores

#: Key, from when on, value, up to when (None: it still is).
Shown = tuple[bytes, int, bytes, int | None]


def shown_versions(spec: StoreSpec, records: Iterable[Sequence[Any]]) -> list[Shown]:
    """All versions that are still kept, by key and time. ``records`` (key, value, timestamp) come in the order of the
    changelog."""
    rows = [record[:3] for record in records]
    plain = replace(spec, key_serde=BYTES, value_serde=BYTES, persistent=False)
    state = TaskStores.open(None, [plain], cell=ContextCell(), log_of=lambda _: None)
    try:
        if rows:
            keys, values, times = (list(column) for column in zip(*rows, strict=True))
            state.restore(
                spec.name, RecordBatch(spec.name, 0, keys, values, times, range(len(rows)), None, len(rows))
            )
        store: VersionedStore[bytes, bytes] = state.stores[spec.name]  # type: ignore[assignment]
        return [
            (key, one.timestamp, one.value, one.valid_to)
            for key in sorted({key for key, _, _ in rows if key is not None})
            for one in store.versions(key)
        ]
    finally:
        state.close()

"""What lies between a store, which knows keys and values, and its overlay, which knows bytes in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pystreams.record import RecordBatch
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.overlay import Overlay
from pystreams.state.spec import TIMESTAMPED_KINDS, StoreSpec


class Layer:
    """The bytes of one store. This one keeps them by the keys of the changelog; others arrange them in an order of
    their own, and remember (``mark``) what their entries do not tell."""

    __slots__ = ("overlay", "spec", "timestamped")

    def __init__(self, spec: StoreSpec, overlay: Overlay) -> None:
        self.spec = spec
        self.overlay = overlay
        self.timestamped = spec.kind in TIMESTAMPED_KINDS

    @property
    def arrangement(self) -> str:
        """How the entries lie in the table. Entries that lie otherwise cannot be read."""
        return f"{self.spec.kind}/0/{self.spec.retain_duplicates}"

    def mark(self) -> bytes | None:
        """What a commit keeps beside the entries, for ``load``."""
        return None

    def load(self, mark: bytes | None) -> None:
        """Go on from what a commit has left in the table. None: there was none."""

    def restored(self, records: Sequence[tuple[bytes, bytes | None]]) -> Mapping[Any, bytes | None]:
        """Changes of the table for records of the changelog, whose values are as the store has them."""
        return dict(records)

    def restored_batch(self, batch: RecordBatch) -> Mapping[Any, bytes | None]:
        """The same for records as the changelog has them."""
        if self.timestamped:
            return self.restored(
                [
                    (key, None if value is None else pack_int64(timestamp) + value)
                    for key, value, timestamp in zip(batch.keys, batch.values, batch.timestamps, strict=True)
                    if key is not None
                ]
            )
        return self.restored(
            [(key, value) for key, value in zip(batch.keys, batch.values, strict=True) if key is not None]
        )

    def physical(self, changelog_key: bytes) -> Any:
        """The key in the table; None if such an entry has expired."""
        return changelog_key

    def as_logged(self, changelog_key: bytes) -> tuple[bytes | None, int | None] | None:
        """What the changelog should hold last under one of its keys: value (None: deleted) and timestamp (None: the
        store keeps no timestamps). None if the store has no say, because the entry has expired."""
        physical = self.physical(changelog_key)
        if physical is None:
            return None
        value = self.overlay.get(physical)
        if not self.timestamped or value is None:
            return value, None
        return value[TIMESTAMP_BYTES:], unpack_int64(value)[0]

    def limit_time(self, time_ms: int) -> None:
        """Have what is restored from now on move the store's time no further than this."""

    def expiry(self) -> Any:
        """The key in the table below which everything has expired, None if nothing has."""
        return None

    def committed(self) -> None:
        """The overlay is in the table now, and what had expired is gone."""

    def abort(self) -> None:
        """Back to the last commit."""
        self.overlay.clear()

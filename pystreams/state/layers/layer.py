"""What lies between a store, which knows keys and values, and its overlay, which knows bytes in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pystreams.record import Headers, RecordBatch
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec

#: Value (None: deleted), timestamp and headers, each of which is None if the store keeps none.
AsLogged: TypeAlias = "tuple[bytes | None, int | None, Headers | None]"


class Layer:
    """The bytes of one store. This one keeps them by the keys of the changelog; others arrange them in an order of
    their own, and remember (``mark``) what their entries do not tell."""

    __slots__ = ("form", "overlay", "spec")

    def __init__(self, spec: StoreSpec, overlay: Overlay) -> None:
        self.spec = spec
        self.overlay = overlay
        #: How values lie in the table.
        self.form = spec.form

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
        # An input topic has headers that nobody has put into the store.
        headers = batch.headers if self.spec.source_topic is None else None
        return self.restored(self.form.all_to_stored(batch.keys, batch.values, batch.timestamps, headers))

    def physical(self, changelog_key: bytes) -> Any:
        """The key in the table; None if such an entry has expired."""
        return changelog_key

    def is_index(self, physical: Any) -> bool:
        """True if a key of the table has no value of its own."""
        return False

    def as_logged(self, changelog_key: bytes, time: int) -> AsLogged | None:
        """What the changelog should hold last under one of its keys; of a store of versions, under the key and that
        time. None if the store has no say, because the entry has expired."""
        physical = self.physical(changelog_key)
        if physical is None:
            return None
        stored = self.overlay.get(physical)
        if stored is None:
            return None, None, None
        value, timestamp, headers = self.form.parts(stored)
        return value, timestamp, headers if self.form.headers else None

    def limit_time(self, time_ms: int) -> None:
        """Have what is restored from now on move the store's time no further than this."""

    def hold(self, time_ms: int) -> None:
        """Have nothing deleted that is of this time or later, expired or not, until told otherwise."""

    def expiry(self) -> tuple[Any, Any] | None:
        """The first key in the table that has expired, and the one before which everything has; None if nothing has."""
        return None

    def committed(self) -> None:
        """The overlay is in the table now, and what had expired is gone."""

    def abort(self) -> None:
        """Back to the last commit."""
        self.overlay.clear()

"""The layer between a store, which has keys and values, and its overlay, which has sorted bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from pystreams.record import Headers, RecordBatch
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec

#: Value (None: deleted), timestamp and headers; the last two are None if the store does not keep them.
AsLogged: TypeAlias = "tuple[bytes | None, int | None, Headers | None]"


#: The marks that a commit may store of a layer: its own state, and the time that it has seen or restored, if that is
#: later than its time in force.
LAYER_MARKS: Final = ("layer", "seen", "restored")


class Layer:
    """The bytes of one store. This class uses the changelog's keys; subclasses arrange entries in an order of their
    own, and save (``marks``) the state that cannot be derived from the entries."""

    __slots__ = ("form", "overlay", "spec")

    #: Whether restoring records does not read the table.
    restores_unread: ClassVar[bool] = True
    #: Whether a store can continue from the table and the ``marks`` alone.
    content_in_table: ClassVar[bool] = True

    def __init__(self, spec: StoreSpec, overlay: Overlay) -> None:
        self.spec = spec
        self.overlay = overlay
        #: The form of values in the table.
        self.form = spec.form

    @property
    def arrangement(self) -> str:
        """The name of the arrangement of entries in the table. Another arrangement cannot be read."""
        return f"{self.spec.kind}/0/{self.spec.retain_duplicates}"

    def marks(self) -> Mapping[str, bytes]:
        """The state that a commit stores beside the entries, by ``LAYER_MARKS``, for ``load``."""
        return {}

    def load(self, marks: Mapping[str, bytes]) -> None:
        """Continue from the state of the last commit, empty where it stored nothing."""

    def continue_as(self, other: Layer) -> None:
        """Take over the state besides the entries that another layer of the same store has in memory, as of its last
        commit. Another thread may be using that layer."""

    def restored(self, records: Iterable[tuple[bytes, bytes | None]]) -> Mapping[Any, bytes | None]:
        """The changes of the table for changelog records whose values already have the store's form."""
        return dict(records)

    def restored_batch(self, batch: RecordBatch) -> Mapping[Any, bytes | None]:
        """The changes of the table for records of the changelog; those with a null key are left out."""
        # Headers of an input topic do not belong to the store.
        headers = batch.headers if self.spec.source_topic is None else None
        stored = self.form.all_to_stored(batch.values, batch.timestamps, headers)
        records: Iterable[Any] = zip(batch.keys, stored, strict=True)
        if not all(batch.keys):
            records = (record for record in records if record[0] is not None)
        return self.restored(records)

    def physical(self, changelog_key: bytes) -> Any:
        """The key in the table; None if the entry has expired."""
        return changelog_key

    def is_index(self, physical: Any) -> bool:
        """Whether a key of the table belongs to an index, and so has no value."""
        return False

    def as_logged(self, changelog_key: bytes, time: int) -> AsLogged | None:
        """The last record that the changelog should have for one of its keys; in a versioned store, for the key and
        that time. None if the store does not know it, because the entry has expired."""
        physical = self.physical(changelog_key)
        if physical is None:
            return None
        stored = self.overlay.get(physical)
        if stored is None:
            return None, None, None
        value, timestamp, headers = self.form.parts(stored)
        return value, timestamp, headers if self.form.headers else None

    def limit_time(self, time_ms: int, seen_ms: int) -> None:
        """Limit the store's stream time in force, and the time that it has seen, for the records that are restored from
        now on."""

    def hold(self, time_ms: int) -> None:
        """Keep all entries of this time or later, even expired ones, until the next call."""

    def expiry(self) -> tuple[Any, Any] | None:
        """The range of expired keys in the table (end exclusive); None if no key has expired."""
        return None

    def after_commit(self) -> None:
        """Called when the overlay has been written to the table and expired entries have been deleted."""

    def abort(self) -> None:
        """Return to the state of the last commit."""
        self.overlay.clear()

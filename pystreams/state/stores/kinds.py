"""Opens each kind of store, with the layout of its keys."""

from __future__ import annotations

from typing import Any

from pystreams.errors import StateError
from pystreams.state.layers.layer import Layer
from pystreams.state.layers.lru_layer import LruLayer
from pystreams.state.layers.session_layer import SessionLayer, session_layout
from pystreams.state.layers.versioned_layer import VersionedLayer
from pystreams.state.layers.window_layer import WindowLayer, layout_of, split_of_windows
from pystreams.state.overlay import Overlay
from pystreams.state.spec import WINDOWED_KINDS, StoreKind, StoreSpec
from pystreams.state.store import Store, StoreContext
from pystreams.state.stores.change_buffer import BufferLayer, ChangeBuffer
from pystreams.state.stores.join_buffer import JoinBuffer
from pystreams.state.stores.join_window import JoinWindowStore
from pystreams.state.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from pystreams.state.stores.list_store import ListStore
from pystreams.state.stores.session import SessionStore
from pystreams.state.stores.versioned import VersionedStore
from pystreams.state.stores.window import TimestampedWindowStore, WindowStore
from pystreams.state.table import Split

_WINDOW_STORES: dict[StoreKind, type[WindowStore[Any, Any] | TimestampedWindowStore[Any, Any]]] = {
    "window": WindowStore,
    "timestamped_window": TimestampedWindowStore,
    "join_window": JoinWindowStore,
}

_KEY_VALUE_STORES: dict[StoreKind, type[KeyValueStore[Any, Any] | TimestampedKeyValueStore[Any, Any]]] = {
    "key_value": KeyValueStore,
    "timestamped_key_value": TimestampedKeyValueStore,
}


def split_of(spec: StoreSpec) -> Split | None:
    """The function that splits a key of the store's table, for stores that are read by time."""
    if spec.kind == "session":
        return session_layout(spec).split
    return split_of_windows(spec) if spec.kind in WINDOWED_KINDS else None


def open_store(context: StoreContext, overlay: Overlay) -> tuple[Store, Layer]:
    """A store over its overlay, and the layer between them. Raises ``StateError`` for an unknown kind."""
    spec = context.spec
    if spec.kind in WINDOWED_KINDS:
        windows = WindowLayer(spec, overlay, layout_of(spec), context.expired)
        return _WINDOW_STORES[spec.kind](context, windows), windows
    if spec.kind == "session":
        sessions = SessionLayer(spec, overlay, session_layout(spec), context.expired)
        return SessionStore(context, sessions), sessions
    if spec.kind == "buffer":
        changes = BufferLayer(spec, overlay)
        return ChangeBuffer(context, changes), changes
    if spec.kind == "join_buffer":
        return JoinBuffer(context, overlay), Layer(spec, overlay)
    if spec.kind == "versioned":
        versions = VersionedLayer(spec, overlay)
        return VersionedStore(context, versions), versions
    if spec.kind in _KEY_VALUE_STORES:
        if spec.max_entries is None:
            return _KEY_VALUE_STORES[spec.kind](context, overlay, overlay), Layer(spec, overlay)
        used_last = LruLayer(context, overlay)
        return _KEY_VALUE_STORES[spec.kind](context, overlay, used_last), used_last
    layer = Layer(spec, overlay)
    if spec.kind == "list":
        return ListStore(context, overlay), layer
    raise StateError(f"{spec.kind} is not a kind of store", where=f"store {spec.name}")

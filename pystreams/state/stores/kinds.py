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


def open_layer(context: StoreContext, overlay: Overlay) -> Layer:
    """The layer between a store and its overlay."""
    spec = context.spec
    if spec.kind in WINDOWED_KINDS:
        return WindowLayer(spec, overlay, layout_of(spec), context.cell.time.of_store(), context.expired)
    if spec.kind == "session":
        return SessionLayer(
            spec, overlay, session_layout(spec), context.cell.time.of_store(), context.expired
        )
    if spec.kind == "buffer":
        return BufferLayer(spec, overlay)
    if spec.kind == "versioned":
        return VersionedLayer(spec, overlay, context.cell.time.of_store())
    if spec.kind in _KEY_VALUE_STORES and spec.max_entries is not None:
        return LruLayer(context, overlay)
    return Layer(spec, overlay)


def open_store(context: StoreContext, layer: Layer) -> Store:
    """A store over its layer. Raises ``StateError`` for an unknown kind."""
    spec, overlay = context.spec, layer.overlay
    if isinstance(layer, WindowLayer):
        return _WINDOW_STORES[spec.kind](context, layer)
    if isinstance(layer, SessionLayer):
        return SessionStore(context, layer)
    if isinstance(layer, BufferLayer):
        return ChangeBuffer(context, layer)
    if isinstance(layer, VersionedLayer):
        return VersionedStore(context, layer)
    if spec.kind in _KEY_VALUE_STORES:
        below = layer if isinstance(layer, LruLayer) else overlay
        return _KEY_VALUE_STORES[spec.kind](context, overlay, below)
    if spec.kind == "join_buffer":
        return JoinBuffer(context, overlay)
    if spec.kind == "list":
        return ListStore(context, overlay)
    raise StateError(f"{spec.kind} is not a kind of store", where=f"store {spec.name}")

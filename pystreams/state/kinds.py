"""Every kind of store: how its keys lie, and what opens it."""

from __future__ import annotations

from pystreams.errors import StateError
from pystreams.state.key_value import KeyValueStore, TimestampedKeyValueStore
from pystreams.state.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.spec import WINDOWED_KINDS, StoreSpec
from pystreams.state.store import Store, StoreContext
from pystreams.state.table import Split
from pystreams.state.window import TimestampedWindowStore, WindowStore
from pystreams.state.window_layer import WindowLayer, layout_of


def split_of(spec: StoreSpec) -> Split | None:
    """What takes a key of the store's table apart, where it is found by time."""
    return layout_of(spec).split if spec.kind in WINDOWED_KINDS else None


def open_store(context: StoreContext, overlay: Overlay) -> tuple[Store, Layer]:
    """A store over its overlay, and what is between them. Raises ``StateError`` for a kind that does not exist."""
    spec = context.spec
    if spec.kind in WINDOWED_KINDS:
        windows = WindowLayer(spec, overlay, layout_of(spec), context.expired)
        return (WindowStore if spec.kind == "window" else TimestampedWindowStore)(context, windows), windows
    layer = Layer(spec, overlay)
    if spec.kind == "key_value":
        return KeyValueStore(context, overlay), layer
    if spec.kind == "timestamped_key_value":
        return TimestampedKeyValueStore(context, overlay), layer
    raise StateError(f"there is no {spec.kind} store", where=f"store {spec.name}")

"""Finds the serde for a type."""

from __future__ import annotations

import uuid
from typing import Any, TypeVar, overload

from pystreams.errors import TopologyError
from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.faust_models import FaustSerde, is_faust_model
from pystreams.serde.primitives import BOOL, BYTES, FLOAT, INT, STR, UUID
from pystreams.serde.shapes import SUPPORTED, type_name
from pystreams.serde.structured import JsonSerde
from pystreams.windowed import Windowed

T = TypeVar("T")

_PRIMITIVES: dict[Any, AnySerde] = {
    str: STR,
    int: INT,
    float: FLOAT,
    bytes: BYTES,
    bool: BOOL,
    uuid.UUID: UUID,
}


@overload
def serde_for(type_or_serde: Serde[T]) -> Serde[T]: ...
@overload
def serde_for(type_or_serde: type[T]) -> Serde[T]: ...
@overload
def serde_for(type_or_serde: Any) -> AnySerde: ...
def serde_for(type_or_serde: Any) -> AnySerde:
    """The serde for an argument ``key=`` or ``value=``. A ``Serde`` is returned unchanged; ``str int float bytes bool
    UUID`` have the bytes of Java's serdes, Faust models those of Faust, and all other types are JSON. Raises
    ``TopologyError`` if there is no serde for it."""
    if isinstance(type_or_serde, Serde):
        return type_or_serde
    try:
        primitive = _PRIMITIVES.get(type_or_serde)
    except TypeError:
        primitive = None
    if primitive is not None:
        return primitive
    if isinstance(type_or_serde, type) and issubclass(type_or_serde, Serde):
        name = type_name(type_or_serde)
        raise TopologyError(
            f"{name} is a class of serdes, not a serde", hint=f"give an instance, such as {name}(...)"
        )
    if getattr(type_or_serde, "__origin__", type_or_serde) is Windowed:
        raise TopologyError(
            "a windowed key does not contain the size of its window",
            hint="give TimeWindowedSerde(str, window_size_ms)",
        )
    if type_or_serde is None:
        raise TopologyError("None is not a type with a serde", hint=SUPPORTED)
    return FaustSerde(type_or_serde) if is_faust_model(type_or_serde) else JsonSerde(type_or_serde)

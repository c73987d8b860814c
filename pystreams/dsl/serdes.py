"""Which serde the records behind a step have."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import BYTES, STR, serde_for
from pystreams.serde.base import AnySerde, TypeOrSerde
from pystreams.serde.primitives import BoolSerde, BytesSerde, FloatSerde, IntSerde, StrSerde, UUIDSerde
from pystreams.topology.deferred import DeferredSerde

__all__ = [
    "TypeOrSerde",
    "aggregate_serde",
    "common",
    "computed",
    "given_or",
    "is_text",
    "read_from_topic",
    "returned_by",
]


def given_or(given: Any, otherwise: AnySerde) -> AnySerde:
    """The serde of the argument ``key=`` or ``value=``, if it was given."""
    return otherwise if given is None else serde_for(given)


def read_from_topic(given: Any, what: str) -> AnySerde:
    """The serde of a source: bytes unless a type or a default is given."""
    return given_or(given, DeferredSerde(what, BYTES))


def computed(given: Any, what: str, location: str, *inputs: AnySerde) -> AnySerde:
    """The serde of what the function at ``location`` returns.

    Nothing tells its type. Text is assumed if it is made from text, since splitting lines and picking words is what
    most untyped programs do (and writing anything else as text fails at once); else the type must be given.
    """
    text = STR if inputs and all(is_text(serde) for serde in inputs) else None
    return given_or(given, DeferredSerde(what, text, location=location))


def returned_by(given: Any, what: str, function: UserFunction, *inputs: AnySerde) -> AnySerde:
    """As ``computed``, where the value is what ``function`` itself returns: a type given as the function (``int``)
    returns its own values, and ``len`` a number. A type that no serde is known for must be told like any other."""
    kind: Any = function.call
    if isinstance(kind, BuiltinFunctionType):
        kind = _RETURNS.get(kind)
    if given is None and isinstance(kind, type):
        try:
            return serde_for(kind)
        except TopologyError:
            return DeferredSerde(what, location=function.location)
    return computed(given, what, function.location, *inputs)


#: Builtin functions whose values have one type whatever they are called with.
_RETURNS: dict[Any, type] = {len: int, hash: int, ord: int, chr: str, repr: str, ascii: str}


def aggregate_serde(initializer: UserFunction, store: str) -> AnySerde:
    """The serde of an aggregate whose type was not given: ``initializer`` may be the type itself."""
    if isinstance(initializer.call, type):
        return serde_for(initializer.call)
    return DeferredSerde(f"the aggregate in store {store}", location=initializer.location)


def is_text(serde: AnySerde) -> bool:
    # Not by identity: an application that was sent to another process has serdes of its own.
    known = serde.fallback if isinstance(serde, DeferredSerde) else serde
    return isinstance(known, StrSerde)


_PRIMITIVES = (StrSerde, IntSerde, FloatSerde, BytesSerde, BoolSerde, UUIDSerde)


def check_keys_meet(method: str, this: str, one: AnySerde, other: str, two: AnySerde) -> None:
    """Raise ``TopologyError`` where rows are looked up by keys of another type. Serdes of one's own may have the same
    bytes all the same; those of plain types have not."""
    if isinstance(one, _PRIMITIVES) and isinstance(two, _PRIMITIVES) and repr(one) != repr(two):
        raise TopologyError(
            f"{method} compares keys of different types: {one!r} of {this}, {two!r} of {other}",
            why="keys meet by their bytes",
            hint="select_key(...) makes keys of another type; a foreign key may be of the other table's",
        )


def common(one: AnySerde, other: AnySerde, what: str) -> AnySerde:
    """The serde of records from two streams: theirs if it is the same."""
    if one is other:
        return one
    if isinstance(one, DeferredSerde) and isinstance(other, DeferredSerde) and one.fallback is other.fallback:
        return DeferredSerde(what, one.fallback)
    return DeferredSerde(what)

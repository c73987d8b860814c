"""Which serde the records behind a step have."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from pystreams.dsl.annotations import Returned, returned_type
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
    """The serde of what is computed at ``location``, where nothing but ``given`` tells its type.

    Text is assumed if it is made from text, since splitting lines and picking words is what most untyped programs do
    (and writing anything else as text fails at once); else the type must be given.
    """
    return given_or(given, DeferredSerde(what, _text_of_text(inputs), location=location))


def returned_by(
    given: Any, what: str, function: UserFunction, *inputs: AnySerde, part: Returned = Returned.WHOLE
) -> AnySerde:
    """The serde of what ``function`` returns, or of a part of it. A type given as the function (``int``) returns its
    own values, and ``len`` a number. A function's annotation tells its type where no default serde is configured; else
    as ``computed``."""
    kind: Any = function.call
    if isinstance(kind, BuiltinFunctionType):
        kind = _RETURNS.get(kind)
    if given is None and part is Returned.WHOLE and isinstance(kind, type):
        try:
            return serde_for(kind)
        except TopologyError:
            return DeferredSerde(what, location=function.location)
    if given is not None:
        return serde_for(given)
    fallback = _annotated(function, part, inputs)
    return DeferredSerde(what, fallback, location=function.location)


def _annotated(function: UserFunction, part: Returned, inputs: tuple[AnySerde, ...]) -> AnySerde | None:
    """The serde of the annotated type; that of text, or none, where there is no annotation or no serde for it."""
    text = _text_of_text(inputs)
    annotation = returned_type(function.call, part)
    subclass_of_str = isinstance(annotation, type) and issubclass(annotation, str)
    if annotation is None or (text is not None and subclass_of_str):
        return text
    try:
        return serde_for(annotation)
    except TopologyError:
        return text


def _text_of_text(inputs: tuple[AnySerde, ...]) -> AnySerde | None:
    return STR if inputs and all(is_text(serde) for serde in inputs) else None


#: Builtin functions whose values have one type whatever they are called with.
_RETURNS: dict[Any, type] = {len: int, hash: int, ord: int, chr: str, repr: str, ascii: str}


def aggregate_serde(initializer: UserFunction, store: str) -> AnySerde:
    """The serde of an aggregate whose type was not given: ``initializer`` may be the type itself, or tell it in
    its annotation."""
    if isinstance(initializer.call, type):
        return serde_for(initializer.call)
    fallback = _annotated(initializer, Returned.WHOLE, ())
    return DeferredSerde(f"the aggregate in store {store}", fallback, location=initializer.location)


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

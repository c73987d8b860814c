"""Determines the serdes of the results of a step."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any, Final

from pystreams.dsl.annotations import Returned, returned_type, type_of_part
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import BYTES, STR, serde_for
from pystreams.serde.base import AnySerde, TypeOrSerde
from pystreams.serde.primitives import VALUE_TYPES, StrSerde
from pystreams.serde.shapes import type_name
from pystreams.topology.deferred import DeferredSerde, Origin

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

_ANNOTATE: Final = "annotate what the function returns (def f(value) -> str), or pass {}"
_ALIKE: Final = "have both inputs the same type: pass {} where they are made"


def given_or(given: Any, otherwise: AnySerde) -> AnySerde:
    """The serde for the argument ``key=`` or ``value=`` if it was given, else ``otherwise``."""
    return otherwise if given is None else serde_for(given)


def read_from_topic(given: Any, what: str) -> AnySerde:
    """The serde of a source: bytes, unless a type is given here or as a default."""
    return given_or(given, DeferredSerde(Origin(what), BYTES))


def computed(given: Any, what: str, location: str, *inputs: AnySerde) -> AnySerde:
    """The serde of a value that the processors of ``location`` compute, whose type is only known if it is ``given``.

    Without it, text is assumed if the input is text, because most untyped programs split lines and pick words (and any
    other value fails at once when it is written as text). Otherwise the type must be given.
    """
    origin = Origin(what, f"nothing says which type the processors of {location} make")
    return given_or(given, DeferredSerde(origin, _text_of_text(inputs)))


def returned_by(
    given: Any, what: str, function: UserFunction, *inputs: AnySerde, part: Returned = Returned.WHOLE
) -> AnySerde:
    """The serde of the result of ``function``, or of a part of it. If the function is a type (``int``), it is that
    type; ``len`` returns a number. The function's annotation is used if no default serde is configured. Otherwise as
    ``computed``."""
    kind: Any = function.call
    if isinstance(kind, BuiltinFunctionType):
        kind = _RETURNS.get(kind)
    if given is None and part is Returned.WHOLE and isinstance(kind, type):
        try:
            return serde_for(kind)
        except TopologyError:
            return DeferredSerde(Origin(what, f"there is no serde for {type_name(kind)}"))
    if given is not None:
        return serde_for(given)
    fallback = _annotated(function, part, inputs)
    return DeferredSerde(_result(what, function), fallback)


def _result(what: str, function: UserFunction) -> Origin:
    """The origin of results of ``function``: why their type is not known, if it is not."""
    if function.is_expression:
        return Origin(what, "the type of the expression's fields is not known")
    if getattr(function.call, "__name__", "") == "<lambda>":
        return Origin(what, "a lambda has no annotation", _ANNOTATE)
    if returned_type(function.call) is None:
        return Origin(what, f"no annotation says what {function.location} returns", _ANNOTATE)
    return Origin(what, f"the annotation of {function.location} gives no type that can be written", _ANNOTATE)


def _annotated(function: UserFunction, part: Returned, inputs: tuple[AnySerde, ...]) -> AnySerde | None:
    """The serde of the annotated type. Without an annotation, or a serde for it: that of text, or None."""
    text = _text_of_text(inputs)
    if function.is_expression:
        annotation = type_of_part(function.result_type, part)
    else:
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


#: Builtin functions that always return the same type.
_RETURNS: dict[Any, type] = {len: int, hash: int, ord: int, chr: str, repr: str, ascii: str}


def aggregate_serde(initializer: UserFunction, store: str) -> AnySerde:
    """The serde of an aggregate whose type was not given: ``initializer`` may be the type itself, or have it in its
    annotation."""
    if isinstance(initializer.call, type):
        return serde_for(initializer.call)
    fallback = _annotated(initializer, Returned.WHOLE, ())
    return DeferredSerde(_result(f"the aggregate in store {store}", initializer), fallback)


def is_text(serde: AnySerde) -> bool:
    # Compared by type, not identity: an application that was sent to another process has serdes of its own.
    known = serde.fallback if isinstance(serde, DeferredSerde) else serde
    return isinstance(known, StrSerde)


_PRIMITIVES = tuple(VALUE_TYPES)


def check_keys_meet(method: str, this: str, one: AnySerde, other: str, two: AnySerde) -> None:
    """Raise ``TopologyError`` if a join compares keys of different plain types. User-defined serdes are not checked,
    because they may produce the same bytes."""
    if isinstance(one, _PRIMITIVES) and isinstance(two, _PRIMITIVES) and repr(one) != repr(two):
        raise TopologyError(
            f"{method} compares keys of different types: {one!r} of {this}, {two!r} of {other}",
            why="keys are compared by their bytes",
            hint="select_key(...) makes keys of another type; a foreign key may be of the type of the other table's",
        )


def common(one: AnySerde, other: AnySerde, what: str) -> AnySerde:
    """The common serde of records from two streams, if there is one."""
    if one is other:
        return one
    origin = Origin(what, "its inputs have no type in common", _ALIKE)
    if isinstance(one, DeferredSerde) and isinstance(other, DeferredSerde) and one.fallback is other.fallback:
        return DeferredSerde(origin, one.fallback)
    return DeferredSerde(origin)

"""Selectors choose the part of each value that is aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isnan
from typing import Any, Final, TypeAlias

import msgspec

from pystreams.dsl.annotations import returned_type
from pystreams.dsl.expressions import Expression
from pystreams.dsl.value_types import part_of, settled, type_of_values
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde.base import AnySerde
from pystreams.serde.shapes import type_name

#: As users give it: the name of a field, a function of the value or an expression, or None for the value itself.
Of: TypeAlias = str | Callable[[Any], Any] | None

#: The type of chosen values if it is not known: JSON returns such values unchanged.
SCALAR: Final = int | float | str | bool

#: Checks a chosen value, and returns it in the form in which it is kept; None: it is ignored.
_Check: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Selector:
    """``choose`` returns what is aggregated of a value (not None), or None. ``type`` is the type of its results (None:
    unknown), ``field`` the name of the field, if it is one; ``itself``: the value is chosen as it is."""

    choose: Callable[[Any], Any]
    type: Any
    field: str | None
    itself: bool = False

    @property
    def stored_type(self) -> Any:
        """The type as which results are stored: where it is unknown, any plain one."""
        return SCALAR if self.type is None else self.type


@dataclass(frozen=True, slots=True)
class Selecting:
    """Makes the selectors of one declared aggregate. ``what`` names it for people; ``values`` is the serde of what it
    aggregates; ``shown`` is the type of its results, if the user has given one.

    ``result``: the results of the aggregate are some of what is chosen, or have its type.
    """

    what: str
    values: AnySerde
    shown: Any = None

    def anything(self, of: Of) -> Selector:
        """Any value, as it is."""
        return self._selector(of)

    def numbers(self, of: Of, *, result: bool = False) -> Selector:
        """Numbers. Raises ``TopologyError`` for a type of others."""
        selector = self._selector(of, result=result)
        if selector.type not in _NUMBERS:
            raise TopologyError(
                f"{self.what} adds numbers, not values of type {type_name(selector.type)}",
                where="" if selector.field is None else f"field {selector.field}",
                hint="choose a field of numbers (int, float, Decimal), or give a function that returns a number",
            )
        # An int is added unchanged. A float may be NaN.
        passes = int if selector.type in (int, None) else None
        return _checking(selector, _NUMBERS[selector.type](self.what), passes=passes)

    def comparable(self, of: Of, *, result: bool = False) -> Selector:
        """Values that have an order. Raises ``TopologyError`` for a type of others."""
        selector = self._selector(of, result=result)
        if not _has_order(selector.type):
            raise TopologyError(
                f"{self.what} compares values, and those of type {type_name(selector.type)} have no order",
                hint="choose a field with an order (numbers, text, times), or give a function that returns one",
            )
        return _kept(selector, self.what, (int, float, str))

    def kept(self, of: Of, *, result: bool = False) -> Selector:
        """Values that are stored."""
        return _kept(self._selector(of, result=result), self.what, (int, float, str, bool))

    def _selector(self, of: Of, *, result: bool = False) -> Selector:
        found = self._found(of)
        return replace(found, type=self.shown) if result and found.type is None else found

    def _found(self, of: Of) -> Selector:
        values = type_of_values(self.values)
        if of is None:
            return Selector(_itself, values, None, itself=True)
        if isinstance(of, str):
            type_, read = part_of(values, of, self.what)
            return Selector(read, type_, of)
        if isinstance(of, Expression):
            type_, compute = of.bind(values, self.what)
            return Selector(compute, type_, None)
        function = UserFunction.of(of, "predicate", self.what)
        if function.takes_key:
            raise TopologyError(
                f"{self.what} got a function of two arguments",
                where=function.location,
                hint="it is called with the value alone",
            )
        kind: Any = function.call
        type_ = kind if isinstance(kind, type) and kind in _NUMBERS else settled(returned_type(function.call))
        return Selector(function.call, type_, None)


def _itself(value: Any) -> Any:
    return value


def _checking(selector: Selector, check: _Check, *, passes: type | None = None) -> Selector:
    """The selector with a check of what it chooses. Values of the class ``passes`` need none."""
    choose = selector.choose

    def chosen(value: Any) -> Any:
        found = choose(value)
        if found is None or found.__class__ is passes:
            return found
        return check(found)

    return replace(selector, choose=chosen)


def _kept(selector: Selector, what: str, scalars: tuple[type, ...]) -> Selector:
    if selector.type is float:
        return _checking(selector, _floats(what))
    if selector.type is not None:
        return selector
    finite = _floats(what)

    def check(value: Any) -> Any:
        if isinstance(value, float):
            return finite(value)
        if value.__class__ not in scalars:
            names = ", ".join(one.__name__ for one in scalars)
            raise TypeError(
                f"{what} cannot keep {value!r}, because the type of its values is not known: without a type they are "
                f"{names}; annotate what the function returns, or name a field of a typed model"
            )
        return value

    return _checking(selector, check)


def _floats(what: str) -> _Check:
    """Floats that JSON has: NaN is ignored, -0.0 is 0.0, infinity raises ``ValueError``."""

    def check(value: Any) -> float | None:
        number = float(value) + 0.0
        if number - number == 0.0:
            return number
        if isnan(number):
            return None
        raise ValueError(f"{what} cannot keep {value!r}: JSON has no infinity")

    return check


def _integers(what: str) -> _Check:
    def check(value: Any) -> int:
        if not isinstance(value, int):
            raise TypeError(f"{what} adds values of type int, not {value!r}")
        return int(value)

    return check


def _decimals(what: str) -> _Check:
    def check(value: Any) -> Decimal | None:
        number = Decimal(value)
        if number.is_finite():
            return number
        if number.is_nan():
            return None
        raise ValueError(f"{what} cannot add {value!r}")

    return check


def _any_numbers(what: str) -> _Check:
    finite = _floats(what)

    def check(value: Any) -> int | float | None:
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            number: float | None = finite(value)
            return number
        decimal = ": annotate what the function returns" if isinstance(value, Decimal) else ""
        raise TypeError(f"{what} adds numbers, not {value!r}{decimal}")

    return check


_NUMBERS: Final[dict[Any, Callable[[str], _Check]]] = {
    None: _any_numbers,
    int: _integers,
    float: _floats,
    Decimal: _decimals,
}


def _has_order(type_: Any) -> bool:
    if not isinstance(type_, type):
        return True
    if issubclass(type_, msgspec.Struct):
        return bool(type_.__struct_config__.order)
    return type_ is not dict and getattr(type_, "__lt__", None) is not object.__lt__  # type: ignore[operator]

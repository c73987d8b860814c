"""Column expressions: functions of a value whose computation is known, like ``field("cents") > 9000``.

They go wherever a step takes a function of the value. Fields are checked when the program is built, and a null operand
makes the result null. A backfill computes steps of expressions for many records at once, and therefore in columns what
is behind them (backfill/compute/column_steps.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Never, NoReturn

from pystreams.dsl.value_types import part_of, type_of_values
from pystreams.errors import TopologyError
from pystreams.functions import Form, UserFunction
from pystreams.serde.base import AnySerde
from pystreams.serde.shapes import type_name

_NUMBERS: Final = (int, float, bool)
_TEXT: Final = (str, bytes)


class Bound(NamedTuple):
    """An expression for values of one type: the type of its results (None: unknown), and the function that computes
    them."""

    type: Any
    compute: Callable[[Any], Any]


class Expression:
    """A computation on a value. Comparisons, ``+``, ``-``, ``*``, ``&``, ``|`` and ``~`` combine expressions.

    If an operand is null (None), the result is null; that of ``&`` and ``|`` only if the other operand does not decide,
    as in SQL.
    """

    __slots__ = ("_compute", "_spelled", "bind")

    def __init__(self, spelled: str, bind: Callable[[Any, str], Bound]) -> None:
        """``spelled`` is how it is written. ``bind`` makes it for values of a type (None: unknown) and a step, which it
        names in errors; it raises ``TopologyError`` for a type that does not fit."""
        self._spelled = spelled
        self.bind = bind
        #: For values of an unknown type, once it is called.
        self._compute: Callable[[Any], Any] | None = None

    def __repr__(self) -> str:
        return self._spelled

    def __call__(self, value: Any, /) -> Any:
        """The result for one value."""
        if self._compute is None:
            self._compute = self.bind(None, self._spelled).compute
        return self._compute(value)

    def is_null(self) -> Expression:
        """Whether it is None; never null itself."""
        return self._then(f"{self._spelled}.is_null()", lambda one: one is None)

    def is_not_null(self) -> Expression:
        """Whether it is not None; never null itself."""
        return self._then(f"{self._spelled}.is_not_null()", lambda one: one is not None)

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether it is equal to one of the values, which are hashable. Raises ``TopologyError`` for one text."""
        if isinstance(values, str | bytes):
            raise TopologyError(
                f"{self._spelled}.is_in({values!r}) takes several values, and this is one",
                why="a text would stand for the set of its characters",
                hint=f"write {self._spelled}.is_in([{values!r}])",
            )
        known = frozenset(values)
        shown = ", ".join(sorted(map(repr, known)))
        return self._then(
            f"{self._spelled}.is_in([{shown}])", lambda one: None if one is None else one in known
        )

    def __gt__(self, other: Any) -> Expression:
        return _combined(">", operator.gt, self, other, bool)

    def __ge__(self, other: Any) -> Expression:
        return _combined(">=", operator.ge, self, other, bool)

    def __lt__(self, other: Any) -> Expression:
        return _combined("<", operator.lt, self, other, bool)

    def __le__(self, other: Any) -> Expression:
        return _combined("<=", operator.le, self, other, bool)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _combined("==", operator.eq, self, other, bool)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _combined("!=", operator.ne, self, other, bool)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Expression:
        return _combined("+", operator.add, self, other, None)

    def __sub__(self, other: Any) -> Expression:
        return _combined("-", operator.sub, self, other, None)

    def __mul__(self, other: Any) -> Expression:
        return _combined("*", operator.mul, self, other, None)

    def __radd__(self, other: Any) -> Expression:
        return _combined("+", operator.add, _constant(other), self, None)

    def __rsub__(self, other: Any) -> Expression:
        return _combined("-", operator.sub, _constant(other), self, None)

    def __rmul__(self, other: Any) -> Expression:
        return _combined("*", operator.mul, _constant(other), self, None)

    def __and__(self, other: Expression) -> Expression:
        return _decided("&", self, other, deciding=False)

    def __or__(self, other: Expression) -> Expression:
        return _decided("|", self, other, deciding=True)

    # ``Never``: type checkers refuse it, too.
    def __rand__(self, other: Never) -> NoReturn:
        raise _not_combined(other, "&", self)

    def __ror__(self, other: Never) -> NoReturn:
        raise _not_combined(other, "|", self)

    def __invert__(self) -> Expression:
        return self._then(f"~{self._spelled}", lambda one: None if one is None else not one)

    def __bool__(self) -> NoReturn:
        raise TopologyError(
            f"the expression {self._spelled} is neither true nor false while the program is built",
            why="it is computed for each value; and, or, not, and comparisons like 1 < x < 5 ask for its truth at once",
            hint="combine expressions with &, | and ~, each in parentheses: (x > 1) & (x < 5)",
        )

    def _then(self, spelled: str, compute: Callable[[Any], Any]) -> Expression:
        """A truth about the result."""

        def bind(values: Any, what: str) -> Bound:
            read = self.bind(values, what).compute
            return Bound(bool, lambda value: compute(read(value)))

        return Expression(spelled, bind)


def field(name: str) -> Expression:
    """The field ``name`` of a value; of a null value it is null. The values are dictionaries, or have attributes."""

    def bind(values: Any, what: str) -> Bound:
        type_, read = part_of(values, name, what)
        return Bound(type_, lambda value: None if value is None else read(value))

    return Expression(f"field({name!r})", bind)


def step_function(function: Callable[..., Any], form: Form, step: str, values: AnySerde) -> UserFunction:
    """A function or an expression that is given to a step, of values with this serde. Raises ``TopologyError`` as
    ``UserFunction.of``, and for an expression that does not fit the values."""
    if not isinstance(function, Expression):
        return UserFunction.of(function, form, step)
    type_, compute = function.bind(type_of_values(values), step)
    return UserFunction(compute, False, repr(function), is_expression=True, result_type=type_)


def _constant(value: Any) -> Expression:
    """The same value always."""
    return Expression(repr(value), lambda _values, _what: Bound(type(value), lambda _: value))


def _combined(
    symbol: str, operation: Callable[[Any, Any], Any], left: Expression, right: Any, result: type | None
) -> Expression:
    """An operation on two operands, null if one of them is. ``result`` is the type of its results, if it does not
    depend on those of the operands."""
    if right is None:
        raise TopologyError(
            f"{left!r} {symbol} None is always null",
            why="an expression with a null operand is null",
            hint=f"ask {left!r}.is_null() or .is_not_null()",
        )
    other = right if isinstance(right, Expression) else _constant(right)
    spelled = f"({left!r} {symbol} {other!r})"

    def bind(values: Any, what: str) -> Bound:
        (left_type, read_left), (right_type, read_right) = left.bind(values, what), other.bind(values, what)
        _check_operands(spelled, symbol, left_type, right_type, what)

        def compute(value: Any) -> Any:
            one = read_left(value)
            if one is None:
                return None
            two = read_right(value)
            return None if two is None else operation(one, two)

        def compute_with_constant(value: Any) -> Any:
            one = read_left(value)
            return None if one is None else operation(one, right)

        numbers = left_type is int and right_type is int
        return Bound(
            result or (int if numbers else None),
            compute if isinstance(right, Expression) else compute_with_constant,
        )

    return Expression(spelled, bind)


def _decided(symbol: str, left: Expression, right: object, *, deciding: bool) -> Expression:
    """``&`` and ``|``: one operand that is ``deciding`` decides, whatever the other one is."""
    if not isinstance(right, Expression):
        raise _not_combined(left, symbol, right)
    other = right

    def bind(values: Any, what: str) -> Bound:
        read_left, read_right = left.bind(values, what).compute, other.bind(values, what).compute

        def compute(value: Any) -> bool | None:
            one = read_left(value)
            if one is not None and bool(one) is deciding:
                return deciding
            two = read_right(value)
            if two is not None and bool(two) is deciding:
                return deciding
            return None if one is None or two is None else not deciding

        return Bound(bool, compute)

    return Expression(f"({left!r} {symbol} {other!r})", bind)


def _not_combined(left: object, symbol: str, right: object) -> TopologyError:
    return TopologyError(
        f"{left!r} {symbol} {right!r} combines an expression with something else",
        hint=f"put comparisons in parentheses, because {symbol} binds more tightly: (x > 1) {symbol} (x < 5)",
    )


def _check_operands(spelled: str, symbol: str, left: Any, right: Any, what: str) -> None:
    """Raise ``TopologyError`` for a number and a text, which Python neither orders nor adds; they are never equal."""
    if symbol == "*":
        return
    for one, two in ((left, right), (right, left)):
        if one in _NUMBERS and two in _TEXT:
            raise TopologyError(
                f"{what} got {spelled}, which does not fit the values",
                why=f"one side is {type_name(left)}, the other one {type_name(right)}",
                hint="use operands of the same kind, or a function that converts one of them",
            )

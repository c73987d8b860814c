"""Decides how a user's function is called, once, when the topology is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pystreams.errors import TopologyError
from pystreams.plural import counted
from pystreams.user_code import CodeLine

#: The parameters that a user's function may have: without the key, and with it.
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "value": (("value",), ("key", "value")),
    "predicate": (("value",), ("key", "value")),
    "action": (("value",), ("key", "value")),
    "aggregate": (("aggregate", "value"), ("key", "aggregate", "value")),
    "join": (("left", "right"), ("key", "left", "right")),
    "merge": (("one", "two"), ("key", "one", "two")),
    "supply": ((), ()),
    "extract": (("record",), ("record", "partition_time")),
    "topic": (("value",), ("key", "value")),
    "wrap": (("name", "supplier"), ("name", "supplier")),
    "partition": (("topic", "key", "value", "partitions"), ("topic", "key", "value", "partitions")),
    "context": (("context",), ("context",)),
    "record": (("record",), ("record",)),
    "transform": (("key", "value"), ("key", "value")),
}

#: Forms whose function may be a generator, because a later step iterates over its result.
_MAY_GENERATE = ("value", "join")

#: The parameters of a function that chooses a topic, if it takes the record's context, too.
_WITH_CONTEXT = ("key", "value", "context")

# fmt: off
Form = Literal[
    "value", "predicate", "action", "aggregate", "join", "merge", "supply", "extract", "topic", "wrap", "partition",
    "context", "record", "transform",
]
# fmt: on


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A user's function, how to call it, and the name by which messages refer to it."""

    call: Callable[..., Any]
    takes_key: bool
    location: str
    #: The function takes the record's context (``processor.RecordContext``) after key and value.
    takes_context: bool = False
    #: The function takes the record's timestamp (ms) after aggregate and value.
    takes_time: bool = False
    #: It is a column expression: the result depends on the value alone, and calling it changes nothing.
    is_expression: bool = False
    #: The type of an expression's results (None: unknown).
    result_type: Any = None

    @classmethod
    def of(cls, function: Callable[..., Any], form: Form, step: str) -> UserFunction:
        """Choose the form from the required positional parameters. A function without a signature (``int``) is called
        without the key. Raises ``TopologyError`` for another arity, for ``async def``, and for a function with
        ``yield`` in a step that does not iterate over its result."""
        location = locate(function)
        without_key, with_key = FORMS[form]
        if not callable(function):
            raise TopologyError(
                f"{step} takes a function, not {function!r}", hint=f"give it a function of {_spell(form)}"
            )
        _refuse_other_kinds(function, form, step)
        parameters = _parameters(function)
        if keyword := _required_keyword(parameters):
            raise TopologyError(
                f"{step} got a function that cannot be called without {keyword}=",
                where=location,
                hint=f"it is called with {_spell(form)}: give {keyword} a default, or bind it with functools.partial",
            )
        required, optional = _positional(parameters)
        if required is None or required == len(without_key):
            return cls(function, False, location)
        if form != "supply" and required == len(with_key):
            return cls(function, True, location)
        if form == "topic" and required == len(_WITH_CONTEXT):
            return cls(function, True, location, takes_context=True)
        if required < len(without_key) <= required + optional:
            return cls(function, False, location)
        raise TopologyError(
            f"{step} got a function that takes {counted(required, 'argument')}",
            where=location,
            hint=f"it is called with {_spell(form)}",
        )


def check_callback(function: object, name: str, step: str) -> None:
    """Raise ``TopologyError`` for an object that is not callable, and for an async or a generator function. The
    parameters are not checked, because reading a signature takes longer."""
    if not callable(function):
        raise TopologyError(f"{step} got {function!r} for a {name}", hint="give it a function")
    _refuse_other_kinds(function, "action", step)


def _refuse_other_kinds(function: Callable[..., Any], form: Form, step: str) -> None:
    """Raise ``TopologyError`` for a function whose body does not run when it is called: async, or with ``yield``."""
    runs = (function, _call_method(function))
    if any(map(_is_async, runs)):
        raise TopologyError(
            f"{step} got an async function",
            where=locate(function),
            why="records are processed one by one, in order, by a plain call",
            hint="use a plain def; do slow I/O before the topology or after it",
        )
    if form not in _MAY_GENERATE and any(map(inspect.isgeneratorfunction, runs)):
        raise TopologyError(
            f"{step} got a function with yield",
            where=locate(function),
            why="calling it only makes a generator, and this step does not iterate over one",
            hint="leave out yield: return the result, or forward records from a processor;"
            " flat_map_values makes several values of one",
        )


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _call_method(function: object) -> Any:
    """The function that runs when a callable object is called."""
    return getattr(type(function), "__call__", None)  # noqa: B004 - it is looked at, not called


def _spell(form: Form) -> str:
    names_of: list[tuple[str, ...]] = [*FORMS[form]]
    if form == "topic":
        names_of.append(_WITH_CONTEXT)
    forms = dict.fromkeys(names_of)
    return " or ".join("(" + ", ".join(names) + ")" if names else "no arguments" for names in forms)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of a function, or None if Python does not know its signature."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _required_keyword(parameters: list[inspect.Parameter] | None) -> str | None:
    """The name of a required keyword-only parameter, if there is one."""
    required = (p.name for p in parameters or () if p.kind is p.KEYWORD_ONLY and p.default is p.empty)
    return next(required, None)


def _positional(parameters: list[inspect.Parameter] | None) -> tuple[int | None, int]:
    """The numbers of required and of optional positional parameters; (None, 0) without a signature."""
    if parameters is None:
        return None, 0
    required = optional = 0
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            optional = 1_000
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            if p.default is p.empty:
                required += 1
            else:
                optional += 1
    return required, optional


def locate(function: Callable[..., Any]) -> str:
    """``name (file:line)`` of a function, as far as Python knows."""
    inner = inspect.unwrap(function)
    inner = getattr(inner, "func", inner)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    runs = vars(inner).get("__init__") if isinstance(inner, type) else _call_method(inner)
    code = getattr(inner, "__code__", None) or getattr(runs, "__code__", None)
    return name if code is None else f"{name} ({CodeLine.of(code.co_filename, code.co_firstlineno)})"

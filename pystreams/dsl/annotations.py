"""Reads the type of a function's results from its annotation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterable
from enum import Enum
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

#: Annotations that give no information.
_SILENT = (Any, object, NoneType)


class Returned(Enum):
    """The part of a function's result whose type is wanted. ``steps`` lead to it."""

    WHOLE = ()
    KEY = (0,)
    VALUE = (1,)
    EACH = ("each",)
    KEY_OF_EACH = ("each", 0)
    VALUE_OF_EACH = ("each", 1)

    def __init__(self, *steps: str | int) -> None:
        # Not ``value``: enums of Python 3.11.2, which Debian 12 has, lose the empty tuple of WHOLE.
        self.steps = steps


def returned_type(function: Callable[..., Any], part: Returned = Returned.WHOLE) -> Any:
    """The type of ``part`` of the result of ``function``, without its ``None``; None if no annotation gives it.

    An annotation with names that only type checkers can resolve (``if TYPE_CHECKING``) counts as none.
    """
    return type_of_part(_return_annotation(function), part)


def type_of_part(result: Any, part: Returned) -> Any:
    """The type of ``part`` of results of the type ``result`` (None: unknown), without its ``None``; None: unknown."""
    annotation = _without_none(result)
    for step in part.steps:
        annotation = _without_none(_of_pair(annotation, step) if isinstance(step, int) else _each(annotation))
    silent = annotation in _SILENT or isinstance(annotation, TypeVar)
    return None if silent else annotation


def _return_annotation(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    try:
        written = getattr(function, "__annotations__", {}).get("return")
        names = getattr(function, "__globals__", {})
        alone: Any = SimpleNamespace(__annotations__={"return": written})
        return get_type_hints(alone, globalns=names)["return"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None


def _without_none(annotation: Any) -> Any:
    """``X`` of ``X | None``: None is null, which is never serialized."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    others = [argument for argument in get_args(annotation) if argument is not NoneType]
    return others[0] if len(others) == 1 else annotation


def _of_pair(annotation: Any, index: int) -> Any:
    arguments = get_args(annotation)
    pair = get_origin(annotation) is tuple and len(arguments) == 2 and Ellipsis not in arguments
    return arguments[index] if pair else None


def _each(annotation: Any) -> Any:
    """``X`` of ``list[X]``, ``Iterator[X]``, ``Generator[X, None, None]``, ``tuple[X, ...]``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return arguments[0] if len(arguments) == 2 and arguments[1] is Ellipsis else None
    iterable = isinstance(origin, type) and issubclass(origin, Iterable)
    one_type = len(arguments) == 1 or origin is Generator
    return arguments[0] if iterable and one_type else None

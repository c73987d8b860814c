"""Calls with misspelt keyword arguments, or with arguments that need their names, are answered with what was probably
meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from pystreams.dsl.materialized import StoreOptions
from pystreams.nearest import check_keywords

C = TypeVar("C", bound=type)

#: The names of the parameters that collect the arguments of a store, and nothing else.
_OF_STORES = {"store", "stores"}
_STORE_ARGUMENTS = frozenset(field.name for field in fields(StoreOptions))


def suggests_keywords(cls: C) -> C:
    """Have the public methods that a class defines raise ``TypeError`` for an unknown keyword argument with the nearest
    known one, and for an argument without its name with the names that it may have. Python itself suggests names since
    3.13, but not for arguments that a method collects for its store. An argument of ``aggregate`` may be any field of a
    declared aggregate: it checks them itself."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_") and name != "aggregate":
            setattr(cls, name, _checked(method))
    return cls


@functools.cache
def _keywords(method: Callable[..., Any]) -> frozenset[str] | None:
    """The keyword arguments that a method knows; None if it takes any. Found at the first call: at the import it would
    be found for all methods."""
    known: set[str] = set()
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            known.add(parameter.name)
        elif parameter.name in _OF_STORES:
            known |= _STORE_ARGUMENTS
        else:
            return None
    return frozenset(known - {"self"})


@functools.cache
def _positional(method: Callable[..., Any]) -> list[str] | None:
    """The parameters that need no name, without ``self``; None if a method takes any number."""
    parameters = inspect.signature(method).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        return None
    return [one.name for one in parameters if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD][1:]


def _check_positional(name: str, method: Callable[..., Any], count: int) -> None:
    """``count``: of the arguments that were given without their names."""
    names = _positional(method)
    if names is None or count <= len(names):
        return
    named = [
        name for name, one in inspect.signature(method).parameters.items() if one.kind is one.KEYWORD_ONLY
    ]
    arguments = "argument" if len(names) == 1 else "arguments"
    takes = (
        f"{len(names)} {arguments} without a name ({', '.join(names)})"
        if names
        else "only arguments with names"
    )
    hint = f"; give the others by name: {', '.join(f'{name}=' for name in named)}" if named else ""
    raise TypeError(f"{name}() takes {takes}, and got {count}{hint}")


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def _check_and_call(*args: Any, **keywords: Any) -> Any:
        name = f"{type(args[0]).__name__}.{method.__name__}" if args else method.__qualname__
        _check_positional(name, method, len(args) - 1)
        known = _keywords(method)
        if known is not None and not keywords.keys() <= known:
            check_keywords(name, keywords, known)
        return method(*args, **keywords)

    return _check_and_call

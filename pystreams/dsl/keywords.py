"""Misspelt keyword arguments of the language's methods are answered with what was probably meant."""

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
    known one. Python itself does so since 3.13, but not for arguments that a method collects for its store. An argument
    of ``aggregate`` may be any field of a declared aggregate: it checks them itself."""
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


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(*args: Any, **keywords: Any) -> Any:
        known = _keywords(method)
        if known is not None and not keywords.keys() <= known:
            check_keywords(method.__qualname__, keywords, known)
        return method(*args, **keywords)

    return checked

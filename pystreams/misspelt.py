"""Makes errors of calls suggest the right names: for misspelt keyword arguments, and for keyword-only arguments that
are given without their names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pystreams.nearest import check_keywords

C = TypeVar("C", bound=type)

#: The names of the parameters that collect the arguments of a store, and nothing else.
_OF_STORES = {"store", "stores"}


def answers_misspelt(cls: C, of_stores: frozenset[str] = frozenset()) -> C:
    """Make the public methods that a class defines, including class methods and static methods, raise ``TypeError``
    with suggestions: for an unknown keyword argument the nearest known name, for an argument without its name the
    possible names. Python itself suggests names since 3.13, but not for arguments that a method collects for its store:
    those are ``of_stores``. ``aggregate`` checks its arguments itself, because they may be any fields of a declared
    aggregate."""
    for name, method in list(vars(cls).items()):
        if name.startswith("_") or name == "aggregate":
            continue
        if inspect.isfunction(method):
            setattr(cls, name, _checked(method, of_stores))
        elif isinstance(method, classmethod):
            setattr(cls, name, classmethod(_checked(method.__func__, of_stores)))
        elif isinstance(method, staticmethod):
            setattr(cls, name, staticmethod(_checked_static(method.__func__)))
    return cls


@functools.cache
def _keywords(method: Callable[..., Any], of_stores: frozenset[str]) -> frozenset[str] | None:
    """The keyword arguments that a method knows; None if it takes any. Computed at the first call, because at the
    import it would be computed for all methods."""
    known: set[str] = set()
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            known.add(parameter.name)
        elif parameter.name in _OF_STORES:
            known |= of_stores
        else:
            return None
    return frozenset(known - {"self", "cls"})


@functools.cache
def _positional(method: Callable[..., Any]) -> list[str] | None:
    """The parameters that need no name, without ``self`` or ``cls``; None if a method takes any number."""
    parameters = inspect.signature(method).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        return None
    unnamed = [one.name for one in parameters if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return unnamed[unnamed[:1] in (["self"], ["cls"]) :]


def _check_positional(name: str, method: Callable[..., Any], count: int) -> None:
    """``count`` is the number of arguments that were given without their names."""
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


def _class_of(owner: Any) -> type:
    """The class whose method is called: ``owner`` is the class itself, or one of its objects."""
    return owner if isinstance(owner, type) else type(owner)


def _checked(method: Callable[..., Any], of_stores: frozenset[str]) -> Callable[..., Any]:
    @functools.wraps(method)
    def _check_and_call(*args: Any, **keywords: Any) -> Any:
        name = f"{_class_of(args[0]).__name__}.{method.__name__}" if args else method.__qualname__
        _check(name, method, len(args) - 1, keywords, of_stores)
        return method(*args, **keywords)

    return _check_and_call


def _checked_static(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def _check_and_call(*args: Any, **keywords: Any) -> Any:
        _check(method.__qualname__, method, len(args), keywords, frozenset())
        return method(*args, **keywords)

    return _check_and_call


def _check(
    name: str,
    method: Callable[..., Any],
    positional: int,
    keywords: Mapping[str, Any],
    of_stores: frozenset[str],
) -> None:
    """``positional``: how many arguments were given without their names."""
    _check_positional(name, method, positional)
    known = _keywords(method, of_stores)
    if known is not None and not keywords.keys() <= known:
        check_keywords(name, keywords, known)

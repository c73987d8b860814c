"""Stateless operations on streams. engine.codegen inlines each into the compiled sub-topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pystreams.functions import UserFunction
from pystreams.topology.nodes import Operation


@dataclass(eq=False, slots=True)
class Forward(Operation):
    """Forwards records unchanged: merge, the children of a branch."""


@dataclass(eq=False, slots=True)
class NotNullKey(Operation):
    """Drops records without a key: the filter before a repartition topic."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class AnyKey(Operation):
    """Replaces ``NotNullKey`` where a later join needs null keys: drops nothing."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class Filter(Operation):
    """Keeps records for which the predicate is true (``negate``: false)."""

    keeps_key: ClassVar[bool] = True

    predicate: UserFunction
    negate: bool = False


@dataclass(eq=False, slots=True)
class Map(Operation):
    """The mapper returns the new (key, value)."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class MapValues(Operation):
    """The mapper returns the new value."""

    keeps_key: ClassVar[bool] = True

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class SelectKey(Operation):
    """The mapper returns the new key."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class FlatMap(Operation):
    """The mapper returns any number of (key, value)."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class FlatMapValues(Operation):
    """The mapper returns any number of values."""

    keeps_key: ClassVar[bool] = True

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class Peek(Operation):
    """Calls the action and forwards the record."""

    keeps_key: ClassVar[bool] = True

    action: UserFunction


@dataclass(eq=False, slots=True)
class Foreach(Operation):
    """Calls the action; the end of the stream."""

    action: UserFunction


@dataclass(eq=False, slots=True)
class Print(Operation):
    """Writes ``[label]: key, value`` to standard output, or appends it to the file at ``path``."""

    label: str
    path: str | None = None


@dataclass(eq=False, slots=True)
class Branch(Operation):
    """Sends each record to the first child whose predicate is true, otherwise to ``default``, if there is one.

    ``children[i]`` is the name of the node after ``predicates[i]``.
    """

    predicates: tuple[UserFunction, ...]
    children: tuple[str, ...]
    default: str | None = None

"""Operations on streams that keep no state. engine.codegen inlines each into the compiled sub-topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pystreams.functions import UserFunction
from pystreams.topology.nodes import Operation


@dataclass(eq=False, slots=True)
class Forward(Operation):
    """Hands records on unchanged: merge, the children of a branch."""


@dataclass(eq=False, slots=True)
class NotNullKey(Operation):
    """Drops records without a key: the filter before a repartition topic."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class AnyKey(Operation):
    """In place of ``NotNullKey`` where a join further on wants null keys: drops nothing."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class Filter(Operation):
    """Keeps what the predicate holds for (``negate``: does not hold for)."""

    keeps_key: ClassVar[bool] = True

    predicate: UserFunction
    negate: bool = False


@dataclass(eq=False, slots=True)
class Map(Operation):
    """The mapper gives the new (key, value)."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class MapValues(Operation):
    """The mapper gives the new value."""

    keeps_key: ClassVar[bool] = True

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class SelectKey(Operation):
    """The mapper gives the new key."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class FlatMap(Operation):
    """The mapper gives any number of (key, value)."""

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class FlatMapValues(Operation):
    """The mapper gives any number of values."""

    keeps_key: ClassVar[bool] = True

    mapper: UserFunction


@dataclass(eq=False, slots=True)
class Peek(Operation):
    """Calls the action and hands the record on."""

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
    """Hands each record to the first child whose predicate holds, else to ``default``, else to none.

    ``children[i]`` is the name of the node behind ``predicates[i]``.
    """

    predicates: tuple[UserFunction, ...]
    children: tuple[str, ...]
    default: str | None = None

"""Reads the current value of a table, which may not have a store of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction
from pystreams.state.layers.session_layer import session_key

#: Returns the (value, timestamp) of a key, or None.
Get = Callable[[Any], "tuple[Any, int] | None"]
#: The same for the version that was valid at a time (ms).
GetAsOf = Callable[[Any, int], "tuple[Any, int] | None"]
#: Derives a step's entry from the entry of its parent table.
_Derive = Callable[[Any, "tuple[Any, int] | None"], "tuple[Any, int] | None"]


class ValueGetter:
    """Reads a table's current value of a key. Source: KTableValueGetterSupplier."""

    def store_names(self) -> tuple[str, ...]:
        """The stores to which a step must be connected to read this table."""
        raise NotImplementedError

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        """The function that reads, for one task. ``flushed``: it returns the values that other steps have received,
        without changes that a cache still holds back."""
        raise NotImplementedError

    def open_as_of(self, environment: OperatorEnvironment) -> GetAsOf | None:
        """The function that reads the version that was valid at a time; None if the table is not versioned."""
        return None


@dataclass(eq=False, slots=True)
class StoreGetter(ValueGetter):
    """Reads a table that has a store."""

    store: str

    def store_names(self) -> tuple[str, ...]:
        return (self.store,)

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        store = environment.store(self.store)
        encode_key, read = store.encode_key, store.read_flushed if flushed else store.read

        def get(key: Any) -> tuple[Any, int] | None:
            try:
                key_bytes = encode_key(key)
            except Exception as error:
                raise store.wrong_key(key) from error
            entry: tuple[Any, int] | None = read(key_bytes)
            return entry

        return get

    def open_as_of(self, environment: OperatorEnvironment) -> GetAsOf | None:
        store = environment.store(self.store)
        if store.spec.kind != "versioned":
            return None
        encode_key, read_as_of = store.encode_key, store.read_as_of

        def get(key: Any, time: int) -> tuple[Any, int] | None:
            try:
                key_bytes = encode_key(key)
            except Exception as error:
                raise store.wrong_key(key) from error
            entry: tuple[Any, int] | None = read_as_of(key_bytes, time)
            return entry

        return get


@dataclass(eq=False, slots=True)
class WindowStoreGetter(ValueGetter):
    """Reads a table that has a window store; keys are windowed."""

    store: str

    def store_names(self) -> tuple[str, ...]:
        return (self.store,)

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        store = environment.store(self.store)
        encode_key, read = store.encode_key, store.read_flushed if flushed else store.read

        def get(key: Any) -> tuple[Any, int] | None:
            entry: tuple[Any, int] | None = read(encode_key(key.key), key.start)
            return entry

        return get


@dataclass(eq=False, slots=True)
class SessionStoreGetter(ValueGetter):
    """Reads a table that has a session store; keys are windowed, and a row's time is the end of its session."""

    store: str

    def store_names(self) -> tuple[str, ...]:
        return (self.store,)

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        store = environment.store(self.store)
        encode_key, read = store.encode_key, store.read_flushed if flushed else store.read

        def get(key: Any) -> tuple[Any, int] | None:
            value = read(session_key(encode_key(key.key), key.start, key.end))
            return None if value is None else (value, key.end)

        return get


@dataclass(eq=False, slots=True)
class FilterGetter(ValueGetter):
    """Reads the parent's value, if the predicate is true for it."""

    parent: ValueGetter
    predicate: UserFunction
    negate: bool

    def store_names(self) -> tuple[str, ...]:
        return self.parent.store_names()

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        parent, kept = self.parent.open(environment, flushed=flushed), self._kept()
        return lambda key: kept(key, parent(key))

    def open_as_of(self, environment: OperatorEnvironment) -> GetAsOf | None:
        parent, kept = self.parent.open_as_of(environment), self._kept()
        return None if parent is None else lambda key, time: kept(key, parent(key, time))

    def _kept(self) -> _Derive:
        passes, takes_key, negate = self.predicate.call, self.predicate.takes_key, self.negate

        def kept(key: Any, entry: tuple[Any, int] | None) -> tuple[Any, int] | None:
            if entry is None:
                return None
            value = entry[0]
            return entry if bool(passes(key, value) if takes_key else passes(value)) != negate else None

        return kept


@dataclass(eq=False, slots=True)
class MapValuesGetter(ValueGetter):
    """Reads the parent's value and maps it."""

    parent: ValueGetter
    mapper: UserFunction

    def store_names(self) -> tuple[str, ...]:
        return self.parent.store_names()

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        parent, mapped = self.parent.open(environment, flushed=flushed), self._mapped()
        return lambda key: mapped(key, parent(key))

    def open_as_of(self, environment: OperatorEnvironment) -> GetAsOf | None:
        parent, mapped = self.parent.open_as_of(environment), self._mapped()
        return None if parent is None else lambda key, time: mapped(key, parent(key, time))

    def _mapped(self) -> _Derive:
        mapper, takes_key = self.mapper.call, self.mapper.takes_key

        def mapped(key: Any, entry: tuple[Any, int] | None) -> tuple[Any, int] | None:
            if entry is None:
                return None
            value = mapper(key, entry[0]) if takes_key else mapper(entry[0])
            return None if value is None else (value, entry[1])

        return mapped


class JoinKind(Enum):
    """Says which sides must have a value for a join to have a result."""

    INNER = (True, True)
    LEFT = (True, False)
    OUTER = (False, False)

    def needs(self, *, right: bool) -> tuple[bool, bool]:
        """Whether a result needs the own value, and the other side's; ``right``: the own side is the right one."""
        left_needed, right_needed = self.value
        return (right_needed, left_needed) if right else (left_needed, right_needed)


def joiner_of_three(joiner: UserFunction, *, swapped: bool) -> Callable[[Any, Any, Any], Any]:
    """A joiner as a function of key, own value and other value; ``swapped``: the own value is the right one."""
    call = joiner.call
    if joiner.takes_key:
        return (lambda key, own, other: call(key, other, own)) if swapped else call
    if swapped:
        return lambda _key, own, other: call(other, own)
    return lambda _key, own, other: call(own, other)


@dataclass(eq=False, slots=True)
class TableJoinGetter(ValueGetter):
    """Reads the values of two tables and joins them. The time is the later of both."""

    left: ValueGetter
    right: ValueGetter
    joiner: UserFunction
    kind: JoinKind

    def store_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.store_names(), *self.right.store_names())))

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        left, right = (side.open(environment, flushed=flushed) for side in (self.left, self.right))
        join = joiner_of_three(self.joiner, swapped=False)
        needs_left, needs_right = self.kind.value

        def get(key: Any) -> tuple[Any, int] | None:
            one = left(key)
            if one is None and needs_left:
                return None
            two = right(key)
            if two is None and (needs_right or one is None):
                return None
            value = join(key, None if one is None else one[0], None if two is None else two[0])
            if value is None:
                return None
            return value, max(entry[1] for entry in (one, two) if entry is not None)

        return get

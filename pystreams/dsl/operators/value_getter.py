"""How a step reads the current value of a table, which may have no store of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction

#: The (value, timestamp) of a key, or None.
Get = Callable[[Any], "tuple[Any, int] | None"]


class ValueGetter:
    """Reads a table's current value of a key. Source: KTableValueGetterSupplier."""

    def store_names(self) -> tuple[str, ...]:
        """The stores that a step must be connected to in order to read this table."""
        raise NotImplementedError

    def open(self, environment: OperatorEnvironment) -> Get:
        """The function that reads, for one task."""
        raise NotImplementedError


@dataclass(eq=False, slots=True)
class StoreGetter(ValueGetter):
    """The table has a store."""

    store: str

    def store_names(self) -> tuple[str, ...]:
        return (self.store,)

    def open(self, environment: OperatorEnvironment) -> Get:
        store = environment.store(self.store)
        encode_key, read = store.encode_key, store.read

        def get(key: Any) -> tuple[Any, int] | None:
            entry: tuple[Any, int] | None = read(encode_key(key))
            return entry

        return get


@dataclass(eq=False, slots=True)
class WindowStoreGetter(ValueGetter):
    """The table has a window store; its keys are windowed."""

    store: str

    def store_names(self) -> tuple[str, ...]:
        return (self.store,)

    def open(self, environment: OperatorEnvironment) -> Get:
        store = environment.store(self.store)
        encode_key, read = store.encode_key, store.read

        def get(key: Any) -> tuple[Any, int] | None:
            entry: tuple[Any, int] | None = read(encode_key(key.key), key.start)
            return entry

        return get


@dataclass(eq=False, slots=True)
class FilterGetter(ValueGetter):
    """The parent's value, if the predicate holds for it."""

    parent: ValueGetter
    predicate: UserFunction
    negate: bool

    def store_names(self) -> tuple[str, ...]:
        return self.parent.store_names()

    def open(self, environment: OperatorEnvironment) -> Get:
        parent = self.parent.open(environment)
        passes, takes_key, negate = self.predicate.call, self.predicate.takes_key, self.negate

        def get(key: Any) -> tuple[Any, int] | None:
            entry = parent(key)
            if entry is None:
                return None
            value = entry[0]
            return entry if bool(passes(key, value) if takes_key else passes(value)) != negate else None

        return get


@dataclass(eq=False, slots=True)
class MapValuesGetter(ValueGetter):
    """The parent's value, mapped."""

    parent: ValueGetter
    mapper: UserFunction

    def store_names(self) -> tuple[str, ...]:
        return self.parent.store_names()

    def open(self, environment: OperatorEnvironment) -> Get:
        parent = self.parent.open(environment)
        mapper, takes_key = self.mapper.call, self.mapper.takes_key

        def get(key: Any) -> tuple[Any, int] | None:
            entry = parent(key)
            if entry is None:
                return None
            value = mapper(key, entry[0]) if takes_key else mapper(entry[0])
            return None if value is None else (value, entry[1])

        return get

"""Rows of declared aggregates: their model, how they change, and their serdes.

A row has a field for each aggregate, with what users see of it. Where a state holds more than is seen (a mean is stored
as sum and count), the row also has its states, which only the store's serde writes: topics, joins and queries see plain
values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import astuple

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.errors import SerializationError
from pystreams.functions import UserFunction
from pystreams.serde import JsonSerde
from pystreams.serde.schemas.finding import Schema

#: The attribute of a row that has its states. It is not a field, so it is neither written nor shown.
_STATES = "_states"


class Rows:
    """The rows of one table. ``name`` is that of their model, if the user has not given one (``given``): a Struct that
    has these fields, in their order."""

    def __init__(
        self, name: str, aggregations: Mapping[str, Aggregation], given: type[msgspec.Struct] | None = None
    ) -> None:
        self.name = name
        self.aggregations = dict(aggregations)
        self._given = given
        parts = tuple(self.aggregations.values())
        #: The aggregates, in the order of their fields.
        self.parts = parts
        #: Whether rows have states of their own. Where the model is given, its types may exclude None.
        self.hide = given is not None or any(part.hides for part in parts)
        shown = [(field, p.shown_type, p.shown(p.empty)) for field, p in self.aggregations.items()]
        #: The class of rows.
        self.model: Any = (
            msgspec.defstruct(name, shown, frozen=True, dict=self.hide)
            if given is None
            else _with_states(given)
        )
        #: The type of rows for readers of a topic with them.
        self.shown_model: Any = self.model if given is None else given
        stored = [(field, part.state_type, part.empty) for field, part in self.aggregations.items()]
        self.stored_model: Any = (
            msgspec.defstruct(f"Stored{name}", stored, frozen=True) if self.hide else self.model
        )
        self._adders = [part.add for part in parts]
        self._empty = self.row(tuple(part.empty for part in parts))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the definitions of the models, because classes that no module has cannot be pickled."""
        return type(self), (self.name, self.aggregations, self._given)

    @property
    def merges(self) -> bool:
        return True

    @property
    def initializer(self) -> UserFunction:
        return UserFunction(self.empty, False, self._location)

    @property
    def aggregator(self) -> UserFunction:
        needs_time = any(part.needs_time for part in self.parts)
        call = self.add_at if needs_time else self.add
        return UserFunction(call, False, self._location, takes_time=needs_time)

    @property
    def merger(self) -> UserFunction:
        return UserFunction(self.merge, False, self._location)

    @property
    def _location(self) -> str:
        return f"aggregate({', '.join(f'{field}=...' for field in self.aggregations)})"

    def empty(self) -> Any:
        """The row before the first record."""
        return self._empty

    def add(self, row: Any, value: Any) -> Any:
        """The row with one more record, if no aggregate needs its timestamp."""
        return self.add_at(row, value, 0)

    def add_at(self, row: Any, value: Any, timestamp: int) -> Any:
        """The row with one more record."""
        states = row.__dict__[_STATES] if self.hide else astuple(row)
        adders = self._adders
        # zip without strict is faster, and this runs for every record.
        return self.row(tuple([add(state, value, timestamp) for add, state in zip(adders, states)]))  # noqa: B905

    def merge(self, one: Any, two: Any) -> Any:
        """The row of the records of ``one``, followed by those of ``two``."""
        states = zip(self.parts, self.states(one), self.states(two), strict=True)
        return self.row(tuple([part.merge(state, other) for part, state, other in states]))

    def states(self, row: Any) -> tuple[Any, ...]:
        """The states of a row, in the order of its fields."""
        return row.__dict__[_STATES] if self.hide else astuple(row)

    def row(self, states: tuple[Any, ...]) -> Any:
        """The row with these states."""
        if not self.hide:
            return self.model(*states)
        row = self.model(*[part.shown(state) for part, state in zip(self.parts, states, strict=True)])
        row.__dict__[_STATES] = states
        return row

    @property
    def order_free(self) -> bool | None:
        """As ``Aggregation.order_free``, of all fields together."""
        free = {part.order_free for part in self.parts}
        return False if False in free else None if None in free else True

    def merges_freely(self, row: Any) -> bool:
        """As ``Aggregation.merges_freely``, of all fields together."""
        states = zip(self.parts, self.states(row), strict=True)
        return all(part.order_free or part.merges_freely(state) for part, state in states)


def _with_states(given: type[msgspec.Struct]) -> Any:
    """A subclass of a user's model whose values can have states. They are equal to those of the model, and pickled as
    such."""

    def equals(self: Any, other: object) -> bool:
        return isinstance(other, given) and astuple(self) == astuple(other)

    namespace = {
        "__eq__": equals,
        "__hash__": lambda self: hash(given(*astuple(self))),
        "__reduce__": lambda self: (given, astuple(self)),
    }
    return msgspec.defstruct(given.__name__, [], bases=(given,), dict=True, namespace=namespace)


def rows_of(function: UserFunction) -> Rows | None:
    """The rows whose initializer, aggregator or merger ``function`` is; None if it is a user's function."""
    owner = getattr(function.call, "__self__", None)
    return owner if isinstance(owner, Rows) else None


def model_name(store: str) -> str:
    """The name of the model of a store's rows: ``OrdersByCity`` of ``orders-by-city``."""
    words = re.findall(r"[a-zA-Z0-9]+", store)
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name.isidentifier() else f"Rows{name}"


class RowSerde(JsonSerde[Any]):
    """Rows as users see them, as JSON."""

    declared_rows = True

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        super().__init__(rows.shown_model)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows,)


class StoredRowSerde(JsonSerde[Any]):
    """Rows with their states, as JSON. Rows that it reads are shown as ``RowSerde`` shows them."""

    declared_rows = True

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        super().__init__(rows.stored_model)
        self.immutable = self.immutable and RowSerde(rows).immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows,)

    def bytes_schema(self) -> Schema:
        """That of the stored model: the serializer below writes nothing else."""
        return super().bytes_schema()

    def serializer(self, topic: str) -> Callable[[Any], bytes]:
        encode, make, model = self._encode, self.rows.stored_model, self.rows.model

        def write(row: Any) -> bytes:
            states = row.__dict__.get(_STATES) if isinstance(row, model) else None
            if states is None:
                raise SerializationError(
                    f"a value of type {type(row).__name__} cannot be written as a row of declared aggregates",
                    where=f"topic {topic}",
                    why="a row is stored with the states of its aggregates, which only their own step computes",
                    hint="write other values to a store of your own",
                )
            return encode(make(*states))

        return write

    def deserializer(self, topic: str) -> Callable[[bytes], Any]:
        decode, row = super().deserializer(topic), self.rows.row
        return lambda data: row(astuple(decode(data)))

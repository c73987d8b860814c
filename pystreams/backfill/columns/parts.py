"""A key or a value as a column, in a form that every process can make again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Protocol

import pyarrow as pa

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.columns.key_spans import Spans, spans_of_serde
from pystreams.backfill.columns.of_serde import Column, column_of, named_column
from pystreams.backfill.exchange.rows import Arrow
from pystreams.serde import BYTES, AnySerde
from pystreams.serde.base import schema_of
from pystreams.state.spec import StoreKind, StoreSpec
from pystreams.topology.nodes import SinkNode

#: Kinds of stores whose changelogs hold more than the bytes of their serdes.
_KINDS_WITH_OWN_BYTES: Final[frozenset[StoreKind]] = frozenset({"list", "buffer", "join_buffer"})


class ColumnPart(Protocol):
    """Keys or values. Picklable."""

    @property
    def column(self) -> Column: ...


@dataclass(frozen=True, slots=True)
class NamedPart:
    """Keys or values of a type of ``named_types``."""

    name: str

    @property
    def column(self) -> Column:
        """Raises ``ConfigError`` for a name that is not a type's."""
        return named_column(self.name)


@dataclass(frozen=True)
class PartOfApplication:
    """Keys or values as an application's serdes read them: those of a store, or those for a topic that it writes.

    A process loads the application again, because serdes cannot always be sent.
    """

    application: Application
    of: Literal["store", "topic"]
    name: str
    part: Literal["key", "value"]

    @property
    def column(self) -> Column:
        return self._column

    @cached_property
    def _column(self) -> Column:
        loaded = self.application.load()
        if self.of == "store":
            spec = store_of(loaded, self.name)
            key, value = (
                (BYTES, BYTES) if spec.kind in _KINDS_WITH_OWN_BYTES else (spec.key_serde, spec.value_serde)
            )
            topic = spec.source_topic or loaded.built.changelog(self.name)
        else:
            (key, value), topic = serdes_of_topic(loaded, self.name), self.name
            key = spans_of_serde(key)[1]
        return column_of(key if self.part == "key" else value, topic)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.application, self.of, self.name, self.part)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that read keys and values. None: they are not read, and have no column."""

    key: ColumnPart | None = None
    value: ColumnPart | None = None

    @classmethod
    def of(cls, application: Application, of: Literal["store", "topic"], name: str) -> Parts:
        """Those of an application's store or topic."""
        return cls(*(PartOfApplication(application, of, name, part) for part in ("key", "value")))

    def fields(self) -> list[Arrow]:
        """The columns ``key`` and ``value``, if there are any. Raises ``ConfigError`` for a name that is not a
        type's."""
        named = (("key", self.key), ("value", self.value))
        return [pa.field(name, part.column.type) for name, part in named if part is not None]

    def columns(self, keys: Arrow, values: Arrow, where: str) -> list[Arrow]:
        """The values of these columns. Raises ``SerializationError``."""
        named = ((keys, self.key, "keys"), (values, self.value, "values"))
        return [part.column.read(data, f"{where}, {what}") for data, part, what in named if part is not None]


def store_of(loaded: LoadedApplication, name: str) -> StoreSpec:
    """A store of an application, which has it."""
    return next(spec for spec in loaded.built.stores if spec.name == name)


def serdes_of_topic(loaded: LoadedApplication, topic: str) -> tuple[AnySerde, AnySerde]:
    """With which an application writes keys and values to a topic; ``BYTES`` where several serdes do, or none that is
    known.

    A sink that chooses the topic of each record counts if no sink names the topic.
    """
    if topic == loaded.config.errors_dead_letter_queue_topic_name:
        return BYTES, BYTES
    sinks = [node for sub in loaded.built.subtopologies for node in sub.nodes if isinstance(node, SinkNode)]
    found = [node for node in sinks if node.topic == topic] or [node for node in sinks if node.topic is None]
    return _one_of([node.key_serde for node in found]), _one_of([node.value_serde for node in found])


def spans_of_topic(loaded: LoadedApplication, topic: str) -> Spans:
    """The windows in the keys that an application writes to a topic."""
    return spans_of_serde(serdes_of_topic(loaded, topic)[0])[0]


def _one_of(serdes: list[AnySerde | None]) -> AnySerde:
    known = [serde for serde in serdes if serde is not None]
    alike = len(known) == len(serdes) and all(schema_of(one) == schema_of(known[0]) for one in known)
    return known[0] if known and alike else BYTES

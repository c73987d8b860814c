"""Serializes the keys and values that a program writes: by the given type, or by the type of the objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from pystreams.errors import SerializationError, TopologyError
from pystreams.serde import serde_for
from pystreams.serde.base import AnySerde
from pystreams.serde.content import writing

Part: TypeAlias = Literal["key", "value"]
_Write: TypeAlias = Callable[[Any], bytes | None]


class ContentWriter:
    """Writes the keys or the values (``part``) of one topic.

    Without a given type, the type of the first object counts: ``str int float bytes bool UUID`` have different bytes,
    and a topic with several of them could not be read again. All types that become JSON may be mixed.
    """

    def __init__(self, topic: str, part: Part, settings: Mapping[str, str]) -> None:
        self._topic: Final = topic
        self._part: Final[Part] = part
        self._settings: Final = settings
        self._given: dict[Any, _Write] = {}
        self._by_class: dict[type, _Write] = {}
        self._first: AnySerde | None = None

    def written(self, content: Any, type_: Any = None) -> bytes | None:
        """The bytes; None is null. Raises ``SerializationError``, and ``TopologyError`` if ``type_`` is not a type."""
        if type_ is not None:
            return self._of(type_)(content)
        if content is None:
            return None
        write = self._by_class.get(content.__class__) or self._inferred(content)
        return write(content)

    def _of(self, type_: Any) -> _Write:
        if isinstance(type_, str):
            # msgspec would read it as the name of a type.
            raise TopologyError(
                f"{type_!r} is not a type",
                where=f"{self._part}= of topic {self._topic}",
                hint="a key comes before its value: produce(topic, key, value); key= and value= are types",
            )
        try:
            known = self._given.get(type_)
        except TypeError:  # It has no hash.
            return self._writing(serde_for(type_))
        if known is None:
            known = self._given[type_] = self._writing(serde_for(type_))
        return known

    def _inferred(self, content: Any) -> _Write:
        try:
            serde = serde_for(content.__class__)
        except TopologyError as error:
            raise SerializationError(
                f"{content!r} cannot be serialized as a {self._part}",
                where=f"topic {self._topic}",
                why=error.what,
                hint=f"give a type or a serde: {self._part}=",
            ) from None
        if self._first is None:
            self._first = serde
        elif type(self._first) is not type(serde):
            raise SerializationError(
                f"{content!r} would be written as {serde!r}, but the {self._part}s before it as {self._first!r}",
                where=f"topic {self._topic}",
                why="a topic with both cannot be read again",
                hint=f"give a type or a serde: {self._part}=",
            )
        write = self._by_class[content.__class__] = self._writing(serde)
        return write

    def _writing(self, serde: AnySerde) -> _Write:
        return writing(serde.configured(self._settings), self._topic, self._part)

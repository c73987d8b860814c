"""Functions that read and write keys and values of a topic, with null as None, and with errors for users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.errors import SerializationError
from pystreams.serde.base import AnySerde


def reading(serde: AnySerde, topic: str) -> Callable[[bytes | None], Any]:
    """The function that deserializes keys or values of a topic; null becomes None."""
    read = serde.deserializer(topic)
    return lambda data: None if data is None else read(data)


def writing(serde: AnySerde, topic: str, part: str) -> Callable[[Any], bytes | None]:
    """The function that serializes keys (``part`` is "key") or values of a topic; None becomes null."""
    write = serde.key_serializer(topic) if part == "key" else serde.serializer(topic)

    def write_checked(content: Any) -> bytes | None:
        if content is None:
            return None
        try:
            written = write(content)
        except Exception as error:
            raise _no_value(serde, topic, part, content, f"{type(error).__name__}: {error}") from error
        if not isinstance(written, bytes):
            raise _no_value(
                serde, topic, part, content, f"the serde returned {type(written).__name__}, not bytes"
            )
        return written

    return write_checked


def _no_value(serde: AnySerde, topic: str, part: str, content: Any, why: str) -> SerializationError:
    return SerializationError(
        f"{content!r} cannot be serialized as a {part} of type {serde!r}",
        where=f"topic {topic}",
        why=why,
        hint=f"give the type of the topic's {part}s: {part}=",
    )

"""Keys and values of dead letters as text: in the formats of ``consume``, or as an application reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystreams.cli.commands.dlq.letters import DeadLetter
from pystreams.cli.records.format import Format, show_bytes
from pystreams.errors import summarize
from pystreams.record import Headers

if TYPE_CHECKING:
    from pystreams.serde.base import AnySerde
    from pystreams.topology.built import BuiltTopology
    from pystreams.topology.nodes import SourceNode


class LetterTexts:
    """Shows the keys and values of letters. ``built``: the application whose sources read the source topics."""

    def __init__(self, keys: Format, values: Format, built: BuiltTopology | None) -> None:
        self.keys = keys
        self.values = values
        self._built = built
        self._sources: dict[str, SourceNode | None] = {}

    def key(self, letter: DeadLetter) -> str:
        """The key of the input record."""
        source = self._source(letter)
        serde = None if source is None else source.key_serde
        return self._shown(letter, letter.key, "key", serde, self.keys)

    def value(self, letter: DeadLetter) -> str:
        """The value of the input record."""
        source = self._source(letter)
        serde = None if source is None else source.value_serde
        return self._shown(letter, letter.value, "value", serde, self.values)

    def _source(self, letter: DeadLetter) -> SourceNode | None:
        """The source of the application that reads the letter's source topic. None: there is none, or the letter does
        not have the bytes of the input record."""
        if self._built is None or letter.source is None or letter.not_replayable is not None:
            return None
        topic = letter.source.topic
        if topic not in self._sources:
            found = (sub.source_for(topic) for sub in self._built.subtopologies)
            self._sources[topic] = next((source for source in found if source is not None), None)
        return self._sources[topic]

    def _shown(
        self, letter: DeadLetter, data: bytes | None, part: str, serde: AnySerde | None, format_: Format
    ) -> str:
        text = show_bytes(format_, data)
        if serde is None or data is None or letter.source is None:
            return text
        try:
            read = _decoded(data, letter.headers, letter.source.topic, part, serde)
        except Exception as error:  # noqa: BLE001 - serdes raise what they like
            return f"{text}  (the application cannot read it: {summarize(error)})"
        return read if isinstance(read, str) else repr(read)


def _decoded(data: bytes, headers: Headers, topic: str, part: str, serde: AnySerde) -> Any:
    """The key or value as a source with this serde reads it. Raises the error of the serde."""
    from pystreams.engine.input.decoding import Refusal, decoded_column

    refused: dict[int, Refusal] = {}
    by_header = serde.header_deserializer(topic, part)
    (read,) = decoded_column([data], [headers], serde.deserializer(topic), by_header, part, refused)
    if refused:
        error = refused[0].error
        assert error is not None, "a key or value that cannot be deserialized has an error"
        raise error
    return read

"""A record of a dead-letter topic, and what its headers say about the failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple

from pystreams.handlers import DEAD_LETTER_HEADERS, RawContent
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch

#: The id of the clients, for the logs of brokers.
CLIENT_ID: Final = "pystreams-dlq"
#: The header of a replayed record: how often it has been replayed. If it fails again, its dead letter has it, too.
REPLAYS_HEADER: Final = "__pystreams.replays"

_FIRST_HEADER: Final = f"{DEAD_LETTER_HEADERS}exception"
#: Bytes of the digest that distinguishes records which came from the same position of topics with the same name.
_DIGEST_BYTES: Final = 6


class NotReplayable(Enum):
    """Why a record of a dead-letter topic cannot be replayed."""

    FOREIGN = f"without the headers of a dead letter ({DEAD_LETTER_HEADERS}*)"
    NO_ORIGIN = "without a source topic: a timer, or a store of the step, has forwarded the record"
    NO_INPUT = "without the bytes of the input record, which was not at hand when the step failed"


class Identity(NamedTuple):
    """Tells input records apart: the position, and a digest of event time, key and value, because another topic with
    the same name has the same positions: an internal topic after a reset, for example."""

    partition: TopicPartition
    offset: int
    digest: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of a dead-letter topic. ``partition`` and ``offset`` are its own position there; key, value, timestamp
    and ``headers`` are those of the input record. ``facts`` are the headers about the failure by the last part of their
    names. ``replays``: how often the input record had been replayed when it failed."""

    partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers
    facts: Mapping[str, str]
    replays: int
    #: The position of the input record; None if it is not known.
    source: TopicPartition | None
    source_offset: int

    @property
    def step(self) -> str:
        """The step that failed; empty if the letter does not name it, as those of Java do not."""
        return self.facts.get("step", "")

    @property
    def error(self) -> str:
        """The class of the error, with its module: ``builtins.ValueError``."""
        return self.facts.get("exception", "")

    @property
    def too_late(self) -> bool:
        """Whether a step dropped the record because it was too late for a window."""
        return "late_ms" in self.facts

    @property
    def place(self) -> str:
        """``dead-0@17``."""
        return f"{self.partition}@{self.offset}"

    @property
    def origin(self) -> str:
        """``orders-0@3``; empty if it is not known."""
        return "" if self.source is None else f"{self.source}@{self.source_offset}"

    @property
    def not_replayable(self) -> NotReplayable | None:
        """Why the letter cannot be replayed; None if it can."""
        if self.source is None:
            return NotReplayable.NO_ORIGIN
        foreign_bytes = self.facts.get("content", RawContent.INPUT.value) != RawContent.INPUT.value
        if foreign_bytes or self.key is self.value is None:
            return NotReplayable.NO_INPUT
        return None

    @property
    def identity(self) -> Identity | None:
        """The identity of the input record. Letters of one record have the same. None: the letter cannot be
        replayed."""
        if self.source is None or self.not_replayable is not None:
            return None
        key, value = (
            b"-" if part is None else b"%d:%b" % (len(part), part) for part in (self.key, self.value)
        )
        digest = blake2b(b"%d:%b%b" % (self.timestamp, key, value), digest_size=_DIGEST_BYTES).hexdigest()
        return Identity(self.source, self.source_offset, digest)


def letter_of(batch: RecordBatch, index: int) -> DeadLetter | None:
    """Record ``index`` of a batch as a dead letter; None if it is not one."""
    own, facts = _split(NO_HEADERS if batch.headers is None else batch.headers[index])
    try:
        topic, partition, offset = facts["topic"], int(facts["partition"]), int(facts["offset"])
    except (KeyError, ValueError):
        return None
    return DeadLetter(
        TopicPartition(batch.topic, batch.partition),
        batch.offsets[index],
        batch.keys[index],
        batch.values[index],
        batch.timestamps[index],
        tuple(header for header in own if header[0] != REPLAYS_HEADER),
        facts,
        _replays(own),
        TopicPartition(topic, partition) if topic else None,
        offset,
    )


def _split(headers: Headers) -> tuple[Headers, dict[str, str]]:
    """The headers of the input record, and those that describe the failure. The input record may itself be a dead
    letter: only the last description belongs to this one."""
    names = [name for name, _ in headers]
    starts = [at for at, name in enumerate(names) if name == _FIRST_HEADER] or [0]
    own, facts = list(headers[: starts[-1]]), {}
    for name, content in headers[starts[-1] :]:
        if name.startswith(DEAD_LETTER_HEADERS):
            facts[name.removeprefix(DEAD_LETTER_HEADERS)] = (content or b"").decode("utf-8", "replace")
        else:
            own.append((name, content))
    return tuple(own), facts


def _replays(headers: Headers) -> int:
    contents = [content for name, content in headers if name == REPLAYS_HEADER]
    return int(contents[-1]) if contents and contents[-1] and contents[-1].isdigit() else 0

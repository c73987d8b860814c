"""Finds the dead letters that the options of a command choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from pystreams.broker.port import Admin, Broker, TopicDescription
from pystreams.cli.commands.dlq.letters import CLIENT_ID, DeadLetter, letter_of
from pystreams.errors import TopicError
from pystreams.handlers import DEAD_LETTER_HEADERS
from pystreams.ids import TopicPartition
from pystreams.log.positions import read_batches
from pystreams.log.topics import existing_topic, partitions_of
from pystreams.nearest import listing
from pystreams.plural import plural


@dataclass(frozen=True, slots=True)
class Filter:
    """The chosen letters: all that are given must fit. ``error`` is the name of a class, with or without its module.
    Times are event times in ms, ``until_ms`` is exclusive."""

    step: str | None = None
    error: str | None = None
    source: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def in_time(self, timestamp: int) -> bool:
        """Whether a record of this event time is chosen, as far as the time decides."""
        late_enough = self.since_ms is None or timestamp >= self.since_ms
        return late_enough and (self.until_ms is None or timestamp < self.until_ms)

    def takes(self, letter: DeadLetter) -> bool:
        """Whether a letter is chosen."""
        return (
            self.in_time(letter.timestamp)
            and (self.step is None or self.step == letter.step)
            and (self.error is None or self.error in (letter.error, letter.error.rpartition(".")[2]))
            and (self.source is None or (letter.source is not None and letter.source.topic == self.source))
        )

    def takes_foreign(self, timestamp: int) -> bool:
        """Whether a record that is not a dead letter is chosen: it has neither step, nor error, nor source."""
        return self.in_time(timestamp) and self.step is self.error is self.source is None


@dataclass(frozen=True, slots=True)
class Letters:
    """The content of a dead-letter topic at one moment."""

    broker: Broker
    topic: TopicDescription
    #: Identifies the topic among those that had or will have its name; empty if the log does not know.
    topic_id: str
    starts: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]

    @classmethod
    def now(cls, broker: Broker, admin: Admin, topic: str) -> Letters:
        """Raises ``TopicError`` if the topic does not exist."""
        found = existing_topic(
            admin,
            topic,
            broker.description,
            "pystreams topics create {}, and give it to the application as errors_dead_letter_queue_topic_name",
        )
        every = partitions_of(found)
        starts, ends = admin.beginning_offsets(every), admin.stable_end_offsets(every)
        return cls(broker, found, admin.topic_id(topic) or "", starts, ends)

    def read(self) -> Iterator[tuple[DeadLetter | None, int]]:
        """Each record as a letter, None if it is not one, with its event time. Partitions are in order."""
        # A restore consumer, because it reads committed records only.
        with closing(self.broker.consumer(CLIENT_ID, "restore")) as consumer:
            for batch in read_batches(consumer, self.starts, self.ends):
                for index in range(len(batch)):
                    yield letter_of(batch, index), batch.timestamps[index]


@dataclass(slots=True)
class Seen:
    """Counts over all letters of a topic, whether the options choose them or not."""

    records: int = 0
    letters: int = 0
    steps: set[str] = field(default_factory=set)
    errors: set[str] = field(default_factory=set)

    def add(self, letter: DeadLetter | None) -> None:
        """Count a record of the topic."""
        self.records += 1
        if letter is not None:
            self.letters += 1
            self.steps.add(letter.step)
            self.errors.add(letter.error)


def none_chosen(letters: Letters, seen: Seen) -> str:
    """The message if the options choose none of the topic's letters. Raises ``TopicError`` if it has none."""
    topic = letters.topic.name
    if not seen.records:
        return f"{topic} is empty."
    if not seen.letters:
        raise TopicError(
            f"{topic} is not a dead-letter topic",
            where=letters.broker.description,
            why=f"none of its {seen.records:,} records has headers {DEAD_LETTER_HEADERS}*",
            hint="name the topic that the application has as errors_dead_letter_queue_topic_name",
        )
    steps, errors = _listing("step", seen.steps), _listing("error", seen.errors)
    return f"None of the {seen.letters:,} dead letters in {topic} is chosen: they have {steps} and {errors}."


def _listing(what: str, names: set[str]) -> str:
    shown = listing(name or "(unknown)" for name in names)
    return f"the {plural(len(names), what)} {shown}"

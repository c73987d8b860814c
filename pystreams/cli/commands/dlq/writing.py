"""Writes the records of dead letters, each once, also if a replay is killed: records and their marks are written in one
transaction.

A replay takes over the transactional id of the one before it: the transaction that a killed replay has left open is
aborted before the marks are read.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Final

from pystreams.broker.port import Admin, TransactionalProducer
from pystreams.cli.commands.dlq.letters import CLIENT_ID, REPLAYS_HEADER, DeadLetter
from pystreams.cli.commands.dlq.marks import Marks, marks_partition
from pystreams.cli.commands.dlq.plan import Targets
from pystreams.cli.commands.dlq.selection import Filter, Letters
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches

#: The largest number of records in a transaction, without their marks, and about their largest size.
TRANSACTION_RECORDS: Final = 5_000
TRANSACTION_BYTES: Final = 16_000_000

_SILENCE_MS: Final = 15_000.0


class Writing:
    """A replay at work. ``written``: the committed records by topic."""

    def __init__(self, letters: Letters, chosen: Filter, targets: Targets, admin: Admin) -> None:
        self.written: Counter[str] = Counter()
        self._letters = letters
        self._chosen = chosen
        self._targets = targets
        self._admin = admin
        self._clock = SystemClock()
        self._partition = marks_partition(letters.topic.name)
        self._marks = Marks(letters.topic_id)

    def close(self) -> None:
        """Release the marks of replayed records."""
        self._marks.close()

    def run(self) -> None:
        """Write all chosen letters whose records have not been replayed. Raises ``BrokerError``, ``ProductionError``:
        the records ``written`` so far stay."""
        broker = self._letters.broker
        transactional_id = f"pystreams-replay-{self._letters.topic.name}"
        with closing(broker.transactional_producer(CLIENT_ID, transactional_id)) as producer:
            # Read now: no other replay's transaction can add to them any more.
            self._load_marks()
            pending: list[DeadLetter] = []
            pending_bytes = 0
            for letter, _ in self._letters.read():
                if letter is None or not self._chosen.takes(letter):
                    continue
                identity = letter.identity
                if identity is None or identity in self._marks:
                    continue
                self._marks.add(identity)
                pending.append(letter)
                pending_bytes += len(letter.key or b"") + len(letter.value or b"")
                if len(pending) >= TRANSACTION_RECORDS or pending_bytes >= TRANSACTION_BYTES:
                    self._commit(producer, pending)
                    pending, pending_bytes = [], 0
            if pending:
                self._commit(producer, pending)

    def _load_marks(self) -> None:
        broker = self._letters.broker
        try:
            self._marks.load(
                committed_batches(broker, self._admin, self._partition, self._clock, _SILENCE_MS)
            )
        except SilentPartitionError as error:
            raise BrokerUnavailableError(
                "The marks of what has been replayed cannot be read to their end",
                where=f"{self._partition}, {broker.description}",
                why=f"nothing arrived for {_SILENCE_MS / 1000:g} s: {error}",
                hint="run the same command again",
            ) from error

    def _commit(self, producer: TransactionalProducer, pending: list[DeadLetter]) -> None:
        written: Counter[str] = Counter()
        # The partitions of the dead-letter topic arrive in any order. Records go back in the order they came in.
        for letter in sorted(pending, key=_position):
            topic, partition = self._targets.partition(letter)
            headers = (*letter.headers, (REPLAYS_HEADER, b"%d" % (letter.replays + 1)))
            producer.send(topic, partition, letter.key, letter.value, letter.timestamp, headers)
            written[topic] += 1
        now_ms = self._clock.now_ms()
        for key, value in self._marks.take_changed():
            producer.send(*self._partition, key, value, now_ms, NO_HEADERS)
        producer.commit()
        self.written += written


def _position(letter: DeadLetter) -> tuple[TopicPartition, int]:
    assert letter.source is not None, "a letter without a source is not replayed"
    return letter.source, letter.source_offset

"""The plan of a replay: the records that it will write, where, and those that it will leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing

from pystreams.broker.port import Admin, TopicDescription
from pystreams.cli.commands.dlq.growth import Growth
from pystreams.cli.commands.dlq.identity_set import IdentitySet
from pystreams.cli.commands.dlq.letters import DeadLetter, NotReplayable
from pystreams.cli.commands.dlq.marks import Marks
from pystreams.cli.commands.dlq.selection import Filter, Letters, Seen
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, TopicError
from pystreams.ids import TopicPartition
from pystreams.log.output import DoubtfulTimes
from pystreams.log.topics import existing_topic
from pystreams.partitioning import partition_for_key
from pystreams.plural import plural
from pystreams.times import spell_ms


class Targets:
    """The partitions that records are written to: those they came from; with ``by_key`` those that the hashes of their
    keys give; in another topic ``to`` always the latter. If ``by_key`` is None, somebody has to choose where a topic
    has more partitions than before."""

    def __init__(self, admin: Admin, where: str, to: str | None, *, by_key: bool | None) -> None:
        self._admin = admin
        self._where = where
        self._to = to
        self._by_key = by_key or to is not None
        self._chosen = self._by_key or by_key is not None
        self._topics: dict[str, TopicDescription] = {}
        self._growth: dict[str, Growth] = {}

    def topic(self, letter: DeadLetter) -> TopicDescription:
        """The topic for a letter. Raises ``TopicError`` if it does not exist."""
        assert letter.source is not None, "a letter without a source is not replayed"
        name = self._to or letter.source.topic
        if name not in self._topics:
            self._topics[name] = self._described(name, letter)
        return self._topics[name]

    def partition(self, letter: DeadLetter) -> TopicPartition:
        """The partition for a letter. Raises ``TopicError`` if it does not exist any more."""
        assert letter.source is not None, "a letter without a source is not replayed"
        topic, number = self.topic(letter), letter.source.partition
        if self._by_key:
            by_hash = letter.key is not None
            number = partition_for_key(letter.key or b"", topic.partitions) if by_hash else number
            return TopicPartition(topic.name, number % topic.partitions)
        if number >= topic.partitions:
            raise TopicError(
                f"{topic.name} has no partition {number} any more",
                where=f"{letter.place}, which came from {letter.origin}",
                why=f"the topic has {topic.partitions} now, counted from 0: it was created again",
                hint="--by-key writes each record to the partition that its key's hash gives",
            )
        if not self._chosen:
            growth = self._growth.setdefault(topic.name, Growth(topic.name, topic.partitions))
            growth.see(letter.key, number)
        return TopicPartition(topic.name, number)

    def check_growth(self) -> None:
        """Raise ``TopicError`` if a topic has more partitions than when its records came, and the user has not chosen
        how to partition."""
        for growth in self._growth.values():
            growth.check(self._where)

    def _described(self, name: str, letter: DeadLetter) -> TopicDescription:
        try:
            return existing_topic(self._admin, name, self._where)
        except TopicError as error:
            if self._to is None:
                error.extend(
                    where=f"{letter.place}, which came from {letter.origin}",
                    hint="or replay to another topic: --to TOPIC, and choose the letters with --source",
                )
            raise


class ReplayPlan:
    """The records that the chosen letters give. Raises ``TopicError`` for a record that cannot be written."""

    def __init__(self, letters: Letters, chosen: Filter, marks: Marks, targets: Targets) -> None:
        self.records: Counter[str] = Counter()
        self.replayed_before = 0
        #: Letters of records of which another letter is replayed.
        self.double = 0
        self.failed_again = 0
        self.skipped: Counter[NotReplayable] = Counter()
        self.late: Counter[str] = Counter()
        self.late_grace_ms = 0
        self.seen = Seen()
        #: Times of records that their topics delete soon, or that are far ahead of the clock.
        self.warnings: list[str] = []
        self._marks = marks
        self._targets = targets
        self._doubtful_times: dict[str, DoubtfulTimes] = {}
        with closing(IdentitySet()) as planned:
            for letter, timestamp in letters.read():
                self.seen.add(letter)
                if letter is None:
                    if chosen.takes_foreign(timestamp):
                        self.skipped[NotReplayable.FOREIGN] += 1
                elif chosen.takes(letter):
                    self._add(letter, planned)
        targets.check_growth()

    @property
    def total(self) -> int:
        """The number of records to write."""
        return self.records.total()

    @property
    def chosen(self) -> int:
        """The number of records of the dead-letter topic that the options choose, if it has any letters."""
        left_out = self.replayed_before + self.double + self.skipped.total()
        return self.seen.letters and self.total + left_out

    def rows(self) -> list[list[str]]:
        """For ``show_table``: a line for each topic, and for each kind of letter that is left out."""
        rows = [[f"{records:,}", f"to {topic}"] for topic, records in sorted(self.records.items())]
        if self.replayed_before:
            rows.append([f"{self.replayed_before:,}", "left out: replayed before"])
        if self.double:
            rows.append([f"{self.double:,}", "left out: other letters of the same records"])
        return rows + [[f"{records:,}", f"left out: {why.value}"] for why, records in self.skipped.items()]

    def late_warning(self) -> str:
        """A warning about records that were too late; empty if there are none."""
        if not self.late:
            return ""
        records = self.late.total()
        were = "1 record was" if records == 1 else f"{records:,} records were"
        steps = f"{plural(len(self.late), 'step')} {', '.join(sorted(self.late))}"
        return (
            f"{were} too late for {steps}. The same application will find them too late again: its time does not "
            f"go back. Give it a longer grace first ({spell_ms(self.late_grace_ms)} was needed then, more is now), or "
            "write them to another topic with --to. An application that is reset reads them in its input anyway: then "
            "do not replay them, or they count twice."
        )

    def _add(self, letter: DeadLetter, planned: IdentitySet) -> None:
        identity, why = letter.identity, letter.not_replayable
        if identity is None:
            assert why is not None, "a letter without an identity cannot be replayed"
            self.skipped[why] += 1
            return
        if identity in self._marks:
            self.replayed_before += 1
            return
        if not planned.add(identity):
            self.double += 1
            return
        target = self._targets.partition(letter)
        self.records[target.topic] += 1
        self.failed_again += letter.replays > 0
        if letter.too_late:
            self.late[letter.step] += 1
            self.late_grace_ms = max(self.late_grace_ms, _ms(letter.facts.get("grace_ms", "")))
        self._warn_of_time(letter)

    def _warn_of_time(self, letter: DeadLetter) -> None:
        topic = self._targets.topic(letter)
        if topic.name not in self._doubtful_times:
            self._doubtful_times[topic.name] = DoubtfulTimes(topic, SystemClock())
        warning = self._doubtful_times[topic.name].warning(letter.timestamp)
        if warning:
            self.warnings.append(warning)


def _ms(text: str) -> int:
    return int(text) if text.isdigit() else 0


def check_target(topic: str, to: str | None, *, by_key: bool | None) -> None:
    """Raise ``ConfigError`` for a replay into the dead-letter topic itself, or into another topic's partitions of the
    same numbers."""
    if to == topic:
        raise ConfigError(
            f"{topic} cannot be replayed to itself", hint="leave --to out, or name another topic"
        )
    if to is not None and by_key is False:
        raise ConfigError(
            f"--same-partitions is not possible with --to {to}",
            why="it means the partitions of the topics that the records came from",
            hint="leave one of them out",
        )


def counted(records: Mapping[str, int]) -> str:
    """``12 records to orders, 3 to payments``."""
    if not records:
        return "no records"
    (topic, first), *others = sorted(records.items())
    texts = [f"{first:,} {plural(first, 'record')} to {topic}"]
    return ", ".join(texts + [f"{number:,} to {name}" for name, number in others])

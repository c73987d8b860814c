"""Java and we take turns at the same applications; beside them Java runs the same without a stop.

There are two runs of each application:

    kept    turn 0: Java    turn 1: we      turn 2: Java    turn 3: we      each finds the state that it left
    wiped   turn 0: we      turn 1: Java    turn 2: we      turn 3: Java    each finds none

A turn ends in the middle of its work: the first result of a burst is held up, and then the application is told to stop,
while records wait in its input topics and those between its sub-topologies.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from pystreams.broker.port import TopicDescription
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers
from tests.interop.java_side import JavaSide
from tests.interop.take_over_records import PARTITIONS, Change, Turn
from tests.interop.take_over_sides import PATIENCE_S, Javas, Ours, Side
from tests.interop.taken_over import TAKEN
from tests.kafka.support import Cluster
from tests.live.support import eventually

#: So many play at the same time. All at once have 200 threads, and starve the tests beside them on a busy machine.
TOGETHER = 4
GROUPS = [list(TAKEN)[start : start + TOGETHER] for start in range(0, len(TAKEN), TOGETHER)]

RUNS = ("kept", "wiped")
UNDISTURBED = "undisturbed"

#: Key, value, timestamp, headers.
Raw = tuple[bytes | None, bytes | None, int, Headers]


def application_id(name: str, run: str) -> str:
    """All applications of a group are one in the undisturbed run."""
    return f"{name}-{run}" if run in RUNS else undisturbed(name)


def undisturbed(name: str) -> str:
    """The application id of the undisturbed run."""
    return next(f"{UNDISTURBED}-{number}" for number, names in enumerate(GROUPS) if name in names)


def own_topics(name: str, run: str, suffixes: Iterable[str]) -> list[str]:
    return [f"{application_id(name, run)}-{suffix}" for suffix in suffixes]


def partitions_of(topics: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]


class Play:
    """``marks`` are the ends of what was written when all of a turn was processed, but for its burst; ``waiting`` the
    records that waited at the hand-over after a turn, by application and topic; ``topics`` are those that there were
    after a turn."""

    def __init__(self, cluster: Cluster, java: JavaSide, names: Sequence[str]) -> None:
        """``names`` are the applications that play at the same time."""
        self.names = names
        self._cluster = cluster
        folder = cluster.path / names[0]
        self._java = Javas(java, names, folder)
        self._ours = Ours(cluster, names, folder)
        self.marks: list[dict[TopicPartition, int]] = []
        self.waiting: list[dict[str, dict[str, int]]] = []
        self.topics: list[dict[str, TopicDescription]] = []
        #: What each application reads: its inputs, and what lies between its sub-topologies.
        self._read: dict[str, list[str]] = defaultdict(list)
        for name in names:
            for run in (*RUNS, UNDISTURBED):
                between = own_topics(name, run, TAKEN[name].between)
                self._read[application_id(name, run)] += [*TAKEN[name].inputs, *between]
        inputs = {topic for name in names for topic in TAKEN[name].inputs}
        self._outputs = [f"{name}-{run}" for name in names for run in (*RUNS, UNDISTURBED)]
        cluster.create(*inputs, *self._outputs, partitions=PARTITIONS)

    def play(self, turns: list[Turn]) -> None:
        self._java.start_undisturbed(UNDISTURBED, undisturbed(self.names[0]))
        for number, turn in enumerate(turns):
            self._turn({run: self._side(number, run) for run in RUNS}, turn, again=number >= len(RUNS))
        self._java.stop_undisturbed(undisturbed(self.names[0]))

    def read(self, topics: Collection[str]) -> dict[TopicPartition, dict[int, Raw]]:
        """All committed records, by offset, of topics from which nothing was removed."""
        partitions = partitions_of(topics)
        ends = self._cluster.admin.end_offsets(partitions)
        found: dict[TopicPartition, dict[int, Raw]] = {partition: {} for partition in partitions}
        broker = self._cluster.broker_with(exactly_once=True)
        with closing(broker.consumer("reading")) as consumer:
            consumer.assign(dict.fromkeys(partitions, 0))
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                for batch in consumer.poll(100):
                    headers = batch.headers or [NO_HEADERS] * len(batch)
                    records = zip(batch.keys, batch.values, batch.timestamps, headers, strict=True)
                    found[TopicPartition(batch.topic, batch.partition)].update(
                        zip(batch.offsets, records, strict=True)
                    )
        return found

    # Turns

    def _side(self, number: int, run: str) -> Side:
        return (self._java, self._ours)[(number + RUNS.index(run)) % 2]

    def _turn(self, sides: dict[str, Side], turn: Turn, *, again: bool) -> None:
        for run, side in sides.items():
            self._prepare(side.state_dir(run), run, again=again)
        try:
            for run, side in sides.items():
                side.start(run)
            # First what the turn before has left.
            self._settle()
            for changes in turn.rounds:
                self._write(changes)
                self._settle()
            self.marks.append(self._cluster.admin.end_offsets(partitions_of(self._outputs)))
            if turn.burst:
                for side in sides.values():
                    side.close_gates()
                self._write(turn.burst)
                _until_empty(lambda: {name for side in sides.values() for name in side.under_way()})
        finally:
            for side in sides.values():
                side.stop()
        self._note()

    @staticmethod
    def _prepare(state_dir: Path, run: str, *, again: bool) -> None:
        assert again == (state_dir.is_dir() and any(state_dir.iterdir())), state_dir
        if again and run == "wiped":
            shutil.rmtree(state_dir)

    def _note(self) -> None:
        ids = self._read.keys() - {undisturbed(self.names[0])}
        assert [id_ for id_ in ids if self._cluster.admin.group_members(id_)] == []
        self.waiting.append(self._lags(ids))
        self.topics.append(self._cluster.admin.describe_topics())

    # Records

    def _write(self, changes: list[Change]) -> None:
        """Each with a header of its own: it goes on with what the record brings about."""
        producer = self._cluster._producer
        for topic, partition, (key, value, at) in changes:
            data = value.to_bytes(8, "big") if isinstance(value, int) else value.encode() if value else None
            producer.send(topic, partition, key.encode(), data, at, (("of", str(at).encode()),))
        producer.commit({}, None)

    def _settle(self) -> None:
        """Wait until everything is processed and committed."""
        left = set(self._read)

        def unsettled() -> set[str]:
            left.difference_update([id_ for id_, lag in self._lags(left).items() if not any(lag.values())])
            return left

        _until_empty(unsettled)

    def _lags(self, ids: Collection[str]) -> dict[str, dict[str, int]]:
        """Records that wait, by application and topic. (First what is committed: the ends of topics between
        sub-topologies are final once everything in front of them is committed.)"""
        committed = {id_: self._cluster.committed(id_) for id_ in ids}
        partitions = {id_: partitions_of(self._read[id_]) for id_ in ids}
        ends = self._cluster.admin.end_offsets({p for of_one in partitions.values() for p in of_one})
        lags: dict[str, dict[str, int]] = {id_: defaultdict(int) for id_ in ids}
        for id_, of_one in partitions.items():
            for partition in of_one:
                done = committed[id_][partition].offset if partition in committed[id_] else 0
                lags[id_][partition.topic] += ends[partition] - done
        return lags


def _until_empty(left: Callable[[], set[str]]) -> None:
    """Wait until nothing is left; say what is if that takes too long."""
    found: set[str] = set()

    def nothing_is_left() -> bool:
        found.clear()
        found.update(left())
        return not found

    eventually(nothing_is_left, found, PATIENCE_S)

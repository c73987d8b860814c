"""What a trial consists of: a history, a topology, and a way to run it. It can be written to a file and read again."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

#: The first millisecond of 2026: all histories begin here.
BEGIN_MS = 1_767_225_600_000

#: The keys of the topic ``right`` where both sources are tables.
OTHER_KEYS = tuple(f"b{number}" for number in range(12))

LEFT, RIGHT, ROWS, OUT = "left", "right", "rows", "out"

Emission: TypeAlias = Literal["update", "close", "suppress"]


class Event(msgspec.Struct, frozen=True, array_like=True):
    """A record of a source topic or a row of a table; ``key`` begins with its partition, unless it is a new key, and
    ``id`` is its value. Without an id the row is deleted."""

    time: int
    key: str
    id: str


#: By partition, in the order of the log.
History: TypeAlias = list[list[Event]]


class Table(msgspec.Struct, frozen=True, tag=True):
    """A join of the source with the table of the topic ``rows``, whose partitions are its own."""

    left: bool


class Rekey(msgspec.Struct, frozen=True, tag=True):
    """A new key, one of ``keys``, and a repartition topic of so many partitions: one hop."""

    salt: int
    keys: int
    partitions: int


class Windows(msgspec.Struct, frozen=True, tag=True):
    """An aggregate of windows: the set of its records' ids. ``size_ms`` is the time difference of sliding windows and
    the gap of sessions; only hopping windows use ``advance_ms``."""

    kind: Literal["tumbling", "hopping", "sliding", "session"]
    size_ms: int
    advance_ms: int
    grace_ms: int
    emission: Emission


class Join(msgspec.Struct, frozen=True, tag=True):
    """A join with the stream of the topic ``right``, which has been given the same keys."""

    kind: Literal["inner", "left", "outer"]
    before_ms: int
    after_ms: int
    grace_ms: int


class Versions(msgspec.Struct, frozen=True, tag=True):
    """A join with the table of the topic ``rows``, which has the new keys of a hop before, and keeps versions: each
    record waits for the grace, and gets the row that was valid at its time."""

    left: bool
    grace_ms: int
    history_ms: int


class Lookup(msgspec.Struct, frozen=True, tag=True):
    """A join with the global table of the topic ``rows``, which has the new keys of a hop before."""

    left: bool


class Changing(msgspec.Struct, frozen=True, tag=True):
    """The source topics are tables, whose rows change.

    ``aggregate``: by a new key the set of its rows' ids. ``join``: the table of these sets with that of the other
    topic. ``foreign``: each row with one of the other topic.
    """

    of: Literal["aggregate", "join", "foreign"]
    kind: Literal["inner", "left"]
    by: Rekey


Step: TypeAlias = Table | Rekey | Windows | Join | Versions | Lookup | Changing


class Run(msgspec.Struct, frozen=True):
    """How the application runs. ``kills``: each start but the last one is killed when a process has begun so many
    records. ``outage_ms``: what comes from this time on is written after the application has caught up with what was
    before, and has stopped."""

    log: Literal["embedded", "kafka"]
    threads: int = 1
    workers: int = 1
    commit_interval_ms: int = 100
    cache_bytes: int = 0
    kills: tuple[int, ...] = ()
    wiped: bool = False
    outage_ms: int | None = None
    #: Its records take a millisecond each.
    slow_partition: int | None = None
    #: On Kafka, which is at least once otherwise.
    exactly_once: bool = False


class Trial(msgspec.Struct, frozen=True):
    """One of the random trials, the same for the same seed."""

    seed: int
    left: History
    right: History
    rows: History
    steps: list[Step]
    run: Run

    def __str__(self) -> str:
        """One line for people, and how to do it again."""
        records = sum(map(len, self.left + self.right))
        steps = " -> ".join(map(str, self.steps))
        tables = " --tables" if any(isinstance(s, Versions | Lookup | Changing) for s in self.steps) else ""
        return (
            f"{records} records in {len(self.left)} partitions -> {steps}; {self.run}; "
            f"again: python -m tests.catching_up --log {self.run.log} --seed {self.seed} --count 1{tables}"
        )


def two_sources(trial: Trial) -> bool:
    """Whether the application reads the topic ``right``, too."""
    return any(isinstance(s, Join) or (isinstance(s, Changing) and s.of != "aggregate") for s in trial.steps)


def new_key(values: str, rekey: Rekey) -> str:
    """The key that a step computes: any function of the value will do that spreads and is the same in each process."""
    first = values.split(" ", 1)[0]
    mixed = sum((number + 3) * ord(letter) for number, letter in enumerate(first)) * 7919 + rekey.salt
    return f"k{mixed % rekey.keys}"


def row_key(value: str) -> str:
    """The key of the other topic that a row refers to: one of those that there may be."""
    return OTHER_KEYS[sum(map(ord, value)) % len(OTHER_KEYS)]


def union(*values: str) -> str:
    """The ids of all, each once, in order."""
    return " ".join(sorted({one for value in values for one in value.split()}))


def pair(left: str | None, right: str | None) -> str:
    """What a join makes of two values: one id."""
    return f"{(left or '-').replace(' ', ',')}*{(right or '-').replace(' ', ',')}"

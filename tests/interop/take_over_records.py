"""What the applications of ``taken_over`` are given: for each of their turns some rounds, then a burst.

A round is written when everything before it is processed; a burst meets a hand-over. Results must not depend on when
what of several partitions or topics is read. So within a round or burst either one side of a join changes, or what
changes on both is apart; a word comes from one partition; and records that are too late come behind others of their
turn that say how late it is, since operators of Java's forget that when they stop.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pystreams.partitioning import partition_for_key

PARTITIONS = 3
TURNS = 4

#: The partition that is meant, and (key, value, timestamp).
Change = tuple[str, int, tuple[str, str | int | None, int]]


class Turn(NamedTuple):
    rounds: list[list[Change]]
    burst: list[Change]


def change(topic: str, key: str, value: str | int | None, at: int, partition: int | None = None) -> Change:
    place = partition_for_key(key.encode(), PARTITIONS) if partition is None else partition
    return topic, place, (key, value, at)


class Making:
    """Makes the records of one application. ``now`` is the event time, in ms."""

    def __init__(self, seed: int, origin_ms: int) -> None:
        self.choose = random.Random(seed)
        self.now = origin_ms
        self._made = 0

    def number(self) -> int:
        self._made += 1
        return self._made

    def ticks(self, topic: str) -> list[Change]:
        """One in each partition that is later than everything before."""
        return [change(topic, f"tick-{p}", 1, self.now, p) for p in range(PARTITIONS)]

    def closing(self, topic: str) -> list[Change]:
        """Ticks by which everything that was open is closed."""
        self.now += 60_000
        return self.ticks(topic)

    def spread(
        self, topic: str, count: int, span_ms: int, keys: int, delays: tuple[int, ...], late: int = 0
    ) -> list[Change]:
        """Numbers over a span of time, out of order by up to the greatest delay. Some are too late: by ``late`` ms."""
        made = self.ticks(topic)
        for at in range(count):
            self.now += span_ms // count
            delay = late if late and at % 10 == 9 else self.choose.choice(delays)
            key = f"k{self.choose.randrange(keys)}"
            made.append(change(topic, key, self.choose.randint(1, 9), self.now - delay))
        return made


def of_words(making: Making) -> Iterator[Turn]:
    """Each partition has words of its own: their order is that of the partition, whoever repartitions them."""

    def lines(count: int) -> list[Change]:
        made = []
        for partition in range(PARTITIONS):
            for _ in range(count):
                making.now += 10
                words = " ".join(f"{partition}-{making.choose.choice('abcdef')}" for _ in range(12))
                at = making.now - making.choose.choice((0, 0, 700))
                made.append(change("counts-in", f"line-{making.number()}", words, at, partition))
        return made

    for turn in range(TURNS):
        yield Turn([lines(4)], lines(15) if turn < TURNS - 1 else [])


def of_numbers(topic: str, keys: int) -> Callable[[Making], Iterator[Turn]]:
    """For windows and sessions: those that are open at a hand-over go on after it."""
    delays = (0, 0, 0, 500, 2_000, 4_000)

    def turns(making: Making) -> Iterator[Turn]:
        for turn in range(TURNS):
            rounds = [
                making.spread(topic, 40, 15_000, keys, delays),
                making.spread(topic, 40, 15_000, keys, delays, late=40_000),
            ]
            if turn < TURNS - 1:
                yield Turn(rounds, making.spread(topic, 60, 20_000, keys, delays))
            else:
                yield Turn([*rounds, making.closing(topic)], [])

    return turns


def of_tables(name: str) -> Callable[[Making], Iterator[Turn]]:
    """One side at a time; a third of the changes are deletions."""

    def side(making: Making, side: str, count: int) -> list[Change]:
        made = []
        for _ in range(count):
            making.now += 10
            key = f"k{making.choose.randrange(12)}"
            value = making.choose.choice((None, f"{side}-{making.number()}", f"{side}-{making.number()}"))
            made.append(change(f"{name}-{side}", key, value, making.now - making.choose.choice((0, 0, 500))))
        return made

    def turns(making: Making) -> Iterator[Turn]:
        for turn in range(TURNS):
            burst = side(making, ("left", "right")[turn % 2], 60) if turn < TURNS - 1 else []
            yield Turn([side(making, "left", 30), side(making, "right", 30)], burst)

    return turns


#: Rows of the left table that change while the answer to a change of the right one is on its way: their results depend
#: on what comes first, but for the last.
RACING = "racing"
#: Rows of the right table that a burst changes, and those to which rows of the left one may change in it. The last one
#: does not exist.
_CHANGING, _STAYING = ("c0", "c1", "c2"), ("c3", "c4", "c5", "c6")


class ForeignRows:
    """Rows that refer to others: "foreign key|number"."""

    def __init__(self, name: str, making: Making) -> None:
        self._making = making
        self._left, self._right = f"{name}-left", f"{name}-right"
        self._keys: dict[str, str | None] = {}

    def turns(self) -> Iterator[Turn]:
        for turn in range(TURNS):
            yield Turn([self._lefts(), self._rights()], self._burst() if turn < TURNS - 1 else [])

    def _row(self, key: str, foreign_key: str | None) -> Change:
        self._making.now += 10
        self._keys[key] = foreign_key
        value = None if foreign_key is None else f"{foreign_key}|{self._making.number()}"
        return change(self._left, key, value, self._making.now)

    def _right_row(self, key: str, deleted: bool) -> Change:
        self._making.now += 10
        value = None if deleted else f"name-{self._making.number()}"
        return change(self._right, key, value, self._making.now)

    def _lefts(self) -> list[Change]:
        choose = self._making.choose
        keys = choose.sample([f"order-{n}" for n in range(60)], 45)
        rows = [self._row(key, choose.choice((None, *_CHANGING, *_STAYING, *_STAYING))) for key in keys]
        return [*rows, *(self._row(f"{RACING}-{n}", _CHANGING[n % 2]) for n in range(12))]

    def _rights(self) -> list[Change]:
        choose = self._making.choose
        chosen = (key for key in (*_CHANGING, *_STAYING[:-1]) if choose.random() < 0.8)
        return [self._right_row(key, choose.random() < 0.2) for key in chosen]

    def _burst(self) -> list[Change]:
        choose = self._making.choose
        rights = [self._right_row(key, deleted=False) for key in _CHANGING]
        moving = [key for key, foreign_key in self._keys.items() if foreign_key in _STAYING]
        lefts = [self._row(key, choose.choice((None, *_STAYING, *_STAYING))) for key in moving[::2]]
        racing = [self._row(f"{RACING}-{n}", choose.choice(_STAYING)) for n in range(12)]
        return [*rights, *lefts, *racing]


def of_meetings(making: Making) -> Iterator[Turn]:
    """The left records of a burst meet right ones of the next turn. The right ones come before the windows of the left
    ones close: what is alone stays alone, and when that is told is Java's to choose."""
    span_ms, pause_ms = 6_000, 1_500

    def side(name: str, count: int, since_ms: int) -> list[Change]:
        making.now = since_ms
        return making.spread(f"meetings-{name}", count, span_ms, 5, (0, 0, 200, 500))

    rounds: list[list[Change]] = []
    for turn in range(TURNS):
        since_ms = making.now + pause_ms
        rounds += [side("left", 30, since_ms), side("right", 30, since_ms)]
        if turn == TURNS - 1:
            yield Turn([*rounds, making.closing("meetings-left")], [])
            return
        burst_ms = making.now + pause_ms
        yield Turn(rounds, side("left", 60, burst_ms))
        rounds = [side("right", 30, burst_ms)]


def of_groups(making: Making) -> Iterator[Turn]:
    """Each partition has groups of its own: the changes of a group come in the order of the partition."""

    def rows(count: int) -> list[Change]:
        made = []
        for _ in range(count):
            making.now += 10
            key = f"k{making.choose.randrange(20)}"
            place = partition_for_key(key.encode(), PARTITIONS)
            row = f"{place}-{making.choose.choice('ab')}|{making.choose.randint(1, 9)}"
            made.append(change("regrouped-in", key, making.choose.choice((None, row, row, row)), making.now))
        return made

    for turn in range(TURNS):
        yield Turn([rows(40)], rows(90) if turn < TURNS - 1 else [])


def _of_foreign(name: str) -> Callable[[Making], Iterator[Turn]]:
    return lambda making: ForeignRows(name, making).turns()


_TURNS: dict[str, Callable[[Making], Iterator[Turn]]] = {
    "counts": of_words,
    "windows": of_numbers("windows-in", 8),
    "closes": of_numbers("closes-in", 8),
    "suppressed": of_numbers("suppressed-in", 8),
    "sessions": of_numbers("sessions-in", 10),
    "tables": of_tables("tables"),
    "optimized": of_tables("optimized"),
    "foreign": _of_foreign("foreign"),
    "foreign-left": _of_foreign("foreign-left"),
    "meetings": of_meetings,
    "regrouped": of_groups,
    "exact-windows": of_numbers("exact-windows-in", 8),
}


def turns_of(names: Iterable[str], seed: int, origin_ms: int) -> list[Turn]:
    """The turns of several applications at once. A round of one may be there while others have none."""
    made = [list(_TURNS[name](Making(seed, origin_ms))) for name in names]
    together = []
    for turns in zip(*made, strict=True):
        longest = max(len(turn.rounds) for turn in turns)
        rounds = [
            [one for turn in turns for one in (turn.rounds[at] if at < len(turn.rounds) else [])]
            for at in range(longest)
        ]
        together.append(Turn(rounds, [one for turn in turns for one in turn.burst]))
    return together

"""The result of having been there, by a plain computation: each record comes at its time, and nothing is too late.

There is no engine here: no tasks, no stores, no stream time that runs ahead; lists that are sorted, and sets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

from pystreams.partitioning import partition_for_key
from tests.catching_up.trials import (
    Changing,
    Emission,
    Event,
    History,
    Join,
    Lookup,
    Rekey,
    Step,
    Table,
    Trial,
    Versions,
    Windows,
    new_key,
    pair,
    row_key,
    union,
)


class Rec(NamedTuple):
    """A record, and when it comes: from ``came`` on, at last at ``by``, in the time of its task. None: not any more."""

    time: int
    key: str
    value: str
    came: int | None
    by: int | None

    @property
    def moment(self) -> int:
        """When it comes, of a record that does."""
        assert self.came is not None
        return self.came


#: By partition, in the order of coming.
Stream: TypeAlias = Mapping[int, Sequence[Rec]]


class Expected(NamedTuple):
    """Results that must come, and those that may: with ``update`` the last one of each key counts, else each comes
    once."""

    results: list[Rec]
    maybe: list[Rec]
    emission: Emission
    #: Whether the time of results is compared. That of a row of a table depends on who came first.
    timed: bool = True


def expected(trial: Trial) -> Expected:
    """What a trial must come to."""
    changing = next((step for step in trial.steps if isinstance(step, Changing)), None)
    if changing is not None:
        return Expected(list(changed(trial, changing)), [], "update", timed=False)
    stream, emission = computed(trial, trial.steps)
    results = [rec for recs in stream.values() for rec in recs if rec.came is not None]
    sure = [rec for rec in results if rec.by is not None]
    return Expected(sure, [rec for rec in results if rec.by is None], emission)


def computed(trial: Trial, steps: Iterable[Step]) -> tuple[Stream, Emission]:
    """The stream behind some steps, and how the last of them emits."""
    stream, other = arrived(trial.left), arrived(trial.right)
    emission: Emission = "close"
    for step in steps:
        match step:
            case Table():
                stream = {p: list(looked_up(recs, trial.rows[p], step)) for p, recs in stream.items()}
            case Rekey():
                stream, other = rekeyed(stream, step), rekeyed(other, step)
            case Versions():
                stream = {p: list(as_of(recs, trial.rows[p], step)) for p, recs in stream.items()}
            case Lookup():
                last = {row.key: row.id for rows in trial.rows for row in rows}
                stream = {p: list(found_in(recs, last, step)) for p, recs in stream.items()}
            case Windows():
                stream = {p: list(windowed(recs, step)) for p, recs in stream.items()}
                emission = step.emission
            case Join():
                stream = {
                    p: list(joined(stream.get(p, ()), other.get(p, ()), step)) for p in {*stream, *other}
                }
                emission = "close"
    return stream, emission


def arrived(history: History) -> Stream:
    """What a source topic has: a record out of order comes when the latest before it came."""
    return {
        number: [
            Rec(event.time, event.key, event.id, came, came)
            for event, came in zip(events, accumulate((e.time for e in events), max), strict=True)
        ]
        for number, events in enumerate(history)
    }


def rekeyed(stream: Stream, rekey: Rekey) -> Stream:
    """By the partitions of the new keys; what has not been emitted does not go on."""
    found: dict[int, list[Rec]] = defaultdict(list)
    for recs in stream.values():
        for rec in recs:
            if rec.came is not None:
                key = new_key(rec.value, rekey)
                found[partition_for_key(key.encode(), rekey.partitions)].append(rec._replace(key=key))
    return {partition: in_order(recs) for partition, recs in found.items()}


def in_order(recs: Iterable[Rec]) -> list[Rec]:
    """Those that come, in the order of coming."""
    coming = [rec for rec in recs if rec.came is not None]
    return sorted(coming, key=lambda rec: (rec.moment, rec.time))


def lateness_ms(recs: Iterable[Rec]) -> int:
    """How far the records of one partition are out of order. Of those that come at one time any may be first."""
    coming = in_order(recs)
    moments = [rec.moment for rec in coming]
    greatest = list(accumulate((rec.time for rec in coming), max))
    # Who has no latest moment comes when all others have come.
    before = [bisect_right(moments, rec.by) if rec.by is not None else len(moments) for rec in coming]
    return max((greatest[at - 1] - rec.time for rec, at in zip(coming, before, strict=True)), default=0)


def looked_up(recs: Sequence[Rec], rows: Sequence[Event], table: Table) -> Iterator[Rec]:
    """With the row that was there when the record came."""
    for rec in recs:
        there = [row.id for row in rows if row.key == rec.key and row.time < rec.moment]
        if there or table.left:
            yield rec._replace(value=pair(rec.value, there[-1] if there else None))


def as_of(recs: Sequence[Rec], rows: Sequence[Event], versions: Versions) -> Iterator[Rec]:
    """With the row that was valid at the time of the record, when the stream has come further by the grace."""
    clock = Clock(recs)
    for rec in recs:
        valid = max(
            (row for row in rows if row.key == rec.key and row.time <= rec.time), default=None, key=_time
        )
        if valid is not None or versions.left:
            came, by = clock.reaches(rec.time + versions.grace_ms)
            value = pair(rec.value, valid.id if valid is not None else None)
            yield rec._replace(value=value, came=came, by=by)


def _time(row: Event) -> int:
    return row.time


def found_in(recs: Iterable[Rec], rows: Mapping[str, str], lookup: Lookup) -> Iterator[Rec]:
    """With the last row of the key."""
    for rec in recs:
        if rec.key in rows or lookup.left:
            yield rec._replace(value=pair(rec.value, rows.get(rec.key)))


# Tables


def changed(trial: Trial, step: Changing) -> Iterator[Rec]:
    """What the last rows come to. Time does not matter: the order of each partition decides which row is the last."""
    left, right = _rows(trial.left), _rows(trial.right)
    found: dict[str, str] = {}
    match step.of:
        case "aggregate":
            found = _by_new_key(left, step.by)
        case "join":
            others = _by_new_key(right, step.by)
            found = _joined_rows(_by_new_key(left, step.by), others, step, lambda key, _: key)
        case "foreign":
            found = _joined_rows(left, right, step, lambda _, value: row_key(value))
    for key, value in found.items():
        yield Rec(0, key, value, 0, 0)


def _rows(history: History) -> dict[str, str]:
    last = {event.key: event.id for events in history for event in events}
    return {key: value for key, value in last.items() if value}


def _by_new_key(rows: Mapping[str, str], rekey: Rekey) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in rows.values():
        key = new_key(value, rekey)
        found[key] = union(found.get(key, ""), value)
    return found


def _joined_rows(
    left: Mapping[str, str], right: Mapping[str, str], step: Changing, other: Callable[[str, str], str]
) -> dict[str, str]:
    matches = {key: (value, right.get(other(key, value))) for key, value in left.items()}
    return {key: pair(*both) for key, both in matches.items() if both[1] is not None or step.kind == "left"}


# Windows


def windowed(recs: Sequence[Rec], windows: Windows) -> Iterator[Rec]:
    """A result for each window."""
    clock = Clock(recs)
    by_key: dict[str, list[Rec]] = defaultdict(list)
    for rec in recs:
        by_key[rec.key].append(rec)
    for key, of_key in by_key.items():
        for start, end in spans(sorted({rec.time for rec in of_key}), windows):
            last = end - 1 if windows.kind in {"tumbling", "hopping"} else end
            held = [rec for rec in of_key if start <= rec.time <= last]
            ids = union(*(rec.value for rec in held))
            if windows.emission == "update":
                came = by = max(rec.moment for rec in held)
            else:
                came, by = clock.reaches(closing_ms(end, windows))
            sure = all(rec.by is not None for rec in held)
            yield Rec(max(rec.time for rec in held), f"{key}@{start}/{end}", ids, came, by if sure else None)


def spans(times: Sequence[int], windows: Windows) -> set[tuple[int, int]]:
    """Starts and ends of the windows that records of one key are in."""
    size, advance = windows.size_ms, windows.advance_ms
    match windows.kind:
        case "tumbling" | "hopping":
            step = size if windows.kind == "tumbling" else advance
            firsts = {(time - time % step, time) for time in times}
            return {(s, s + size) for first, time in firsts for s in range(first, time - size, -step)}
        case "sliding":
            ending = {(time - size, time) for time in times}
            behind = {(time + 1, time + 1 + size) for time in times}
            return ending | {(s, e) for s, e in behind if bisect_left(times, s) < bisect_right(times, e)}
        case "session":
            breaks = [i for i in range(1, len(times)) if times[i] - times[i - 1] > size]
            edges = [0, *breaks, len(times)]
            return {(times[a], times[b - 1]) for a, b in pairwise(edges)}


def closing_ms(end: int, windows: Windows) -> int:
    """The stream time at which the result of a window is emitted."""
    gap = windows.size_ms if windows.kind == "session" else 0
    past = 1 if windows.emission == "close" and windows.kind in {"sliding", "session"} else 0
    return end + gap + windows.grace_ms + past


class Clock:
    """When the records of one partition bring its stream time to some point."""

    def __init__(self, recs: Iterable[Rec]) -> None:
        coming = in_order(recs)
        self._first = _Advance((rec.moment, rec.time) for rec in coming)
        self._last = _Advance((rec.by, rec.time) for rec in coming if rec.by is not None)

    def reaches(self, time: int, surely: int | None = None) -> tuple[int | None, int | None]:
        """From when on, and by when, or by when ``surely``; None: it need not get there."""
        return self._first.to(time), self._last.to(time if surely is None else surely)


class _Advance:
    def __init__(self, moments_and_times: Iterable[tuple[int, int]]) -> None:
        self._moments = sorted(moments_and_times)
        self._times = list(accumulate((time for _, time in self._moments), max))

    def to(self, time: int) -> int | None:
        at = bisect_left(self._times, time)
        return self._moments[at][0] if at < len(self._moments) else None


# Joins of streams


def joined(left: Sequence[Rec], right: Sequence[Rec], join: Join) -> Iterator[Rec]:
    """All pairs, and what has no match."""
    clock = Clock([*left, *right])
    matched: set[Rec] = set()
    for one in left:
        for other in right:
            if one.key == other.key and -join.before_ms <= other.time - one.time <= join.after_ms:
                matched |= {one, other}
                came = max(one.moment, other.moment)
                yield Rec(max(one.time, other.time), one.key, pair(one.value, other.value), came, came)
    alone = [(rec, pair(rec.value, None)) for rec in left if join.kind != "inner" and rec not in matched]
    alone += [(rec, pair(None, rec.value)) for rec in right if join.kind == "outer" and rec not in matched]
    wait = join.after_ms + join.grace_ms
    for rec, value in alone:
        # As in Java, who waits is looked at when time has passed the end of the last that was looked at before.
        came, by = clock.reaches(rec.time + wait + 1, rec.time + 2 * wait + 1)
        yield rec._replace(value=value, came=came, by=by)

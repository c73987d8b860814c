"""What the flights application must have written, at least once, whoever was killed when.

A task's life begins with what the changelog holds, and at the committed offset. Both are known for every life, from the
journals; so is the last record that it began. So every single change that it wrote can be computed: the value that it
found, and the records of that window from the committed offset on. At the end of all lives, for every window:

    departures   >= the truth, and <= the truth plus the records of this window that were processed more than once
    departures   == the truth plus those among them whose first processing had reached the changelog
    minutes      == those of exactly these records
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from apps.flights import Airline, Delays, Flight, MeanDelay
from apps.flights_report import DAY_MS
from tests.kafka.kills.journal import CLOSED, RUNNING, Life
from tests.kills.flights import Raw, Window

_SEQUENCE_BYTES = 4


class Departures(NamedTuple):
    """Of one window, ascending by offset: where its records are, and the minutes of delay up to each (0 first)."""

    offsets: list[int]
    minutes: list[int]

    def between(self, start: int, end: int) -> int:
        """Records from offset ``start`` to ``end`` (exclusive)."""
        return bisect_left(self.offsets, end) - bisect_left(self.offsets, start)


class Total(NamedTuple):
    """The content of a window."""

    departures: int = 0
    minutes: int = 0


class Input(NamedTuple):
    """The departures of one partition by window; ``records`` counts the cancelled ones, too."""

    records: int
    windows: Mapping[Window, Departures]


class Account(NamedTuple):
    """What came out of a partition. ``again`` were processed more than once, ``doubled`` of them count twice."""

    lives: int
    records: int
    again: int
    doubled: int


def input_of(flights: Sequence[tuple[bytes, bytes, int]]) -> Input:
    """Of all flights of a partition: (carrier, flight, time)."""
    decode = msgspec.json.Decoder(Flight).decode
    windows: dict[Window, Departures] = defaultdict(lambda: Departures([], [0]))
    for offset, (carrier, value, timestamp) in enumerate(flights):
        flight = decode(value)
        if flight.dep_time is not None:
            of = windows[carrier + (timestamp - timestamp % DAY_MS).to_bytes(8, "big")]
            of.offsets.append(offset)
            of.minutes.append(of.minutes[-1] + (flight.dep_delay or 0))
    return Input(len(flights), dict(windows))


def audit(given: Input, lives: Sequence[Life], changes: Sequence[Raw]) -> tuple[Account, dict[Window, Total]]:
    """Compute every change of a partition's changelog, and the windows at the end.

    Raises ``AssertionError`` for a change that is not what it must be, and for a window that lost something or counts
    a record again that nobody processed again.
    """
    lives = sorted(life for life in lives if life.phase in (RUNNING, CLOSED))
    state: dict[Window, Total] = {}
    again: Counter[Window] = Counter()
    processed = 0
    assert [change.offset for change in changes] == [*range(len(changes))], "changes are missing"
    assert lives, "nobody ever worked on this partition"
    assert lives[0].first_offset == lives[0].changelog_offset == 0, (
        f"a first life that is not the first: {lives[0]}"
    )
    for number, life in enumerate(lives):
        following = lives[number + 1] if number + 1 < len(lives) else None
        next_offset = given.records if following is None else following.first_offset
        wrote_up_to = len(changes) if following is None else following.changelog_offset
        assert life.changelog_offset <= wrote_up_to, (
            f"restored less than the life before: {life}, {following}"
        )
        assert next_offset <= life.last_offset + 1, f"committed, and not processed: {life}, {next_offset}"
        before = dict(state)
        _follow(given, life, changes[life.changelog_offset : wrote_up_to], state)
        for window, departures in given.windows.items():
            committed = departures.between(life.first_offset, next_offset)
            counted = state.get(window, Total()).departures - before.get(window, Total()).departures
            assert counted >= committed, (
                f"{committed - counted} of {window!r} lost between {life} and {following}"
            )
            beyond = departures.between(next_offset, life.last_offset + 1)
            assert counted - committed <= beyond, f"{window!r} grew by more than what was read: {life}"
            again[window] += beyond
        processed += life.last_offset + 1 - life.first_offset
    doubled = 0
    for window, departures in given.windows.items():
        truth, found = len(departures.offsets), state[window].departures
        assert truth <= found <= truth + again[window], (window, truth, found, again[window])
        doubled += found - truth
    return Account(len(lives), given.records, processed - given.records, doubled), state


def _follow(given: Input, life: Life, changes: Sequence[Raw], state: dict[Window, Total]) -> None:
    """Check the changes of one life, and bring ``state`` from what it found to what it left."""
    decode = msgspec.json.Decoder(Delays).decode
    found = dict(state)
    for change in changes:
        window, value = change.key[:-_SEQUENCE_BYTES], decode(change.value)
        departures, minutes = found.get(window, Total())
        offsets, sums = given.windows[window]
        start = bisect_left(offsets, life.first_offset)
        end = start + value.departures - departures
        assert value.departures > state.get(window, Total()).departures, (
            f"twice, or backward: {change}, {life}"
        )
        assert end <= len(offsets), f"more than there are: {change}, {life}"
        assert offsets[end - 1] <= life.last_offset, f"of records that were not read: {change}, {life}"
        expected = Total(value.departures, minutes + sums[end] - sums[start])
        state[window] = Total(value.departures, value.delay_sum)
        assert state[window] == expected, f"{expected} expected: {change}, {life}"


def check_outputs(
    outputs: Sequence[Raw], state: Mapping[Window, Total], airlines: Mapping[bytes, Airline]
) -> None:
    """The last output of each window is its last change."""
    decode = msgspec.json.Decoder(MeanDelay).decode
    last = {raw.key: decode(raw.value) for raw in outputs}
    expected = {
        window: MeanDelay(airlines[window[:-8]].name, total.departures, total.minutes / total.departures)
        for window, total in state.items()
    }
    assert last == expected, list(last.items() ^ expected.items())[:6]

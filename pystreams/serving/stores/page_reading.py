"""Reads one page from the opened store of a task. Each kind of store has a function that returns its entries, of which
``read_page`` takes as many as a page may hold."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from pystreams.clock import Deadline
from pystreams.serving.query_errors import BadQueryError, TooSlowError
from pystreams.serving.stores.json_forms import JsonForm
from pystreams.serving.stores.parts import Entry, is_full
from pystreams.serving.stores.questions import EntryPlace, Question
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.stores.versioned import VersionedRecord
from pystreams.stream_time import TIME_MAX

#: How many entries are read between two looks at the clock.
_ENTRIES_PER_LOOK: Final = 256

_KEY_VALUE: Final = frozenset({"key_value", "timestamped_key_value", "list"})
_WINDOW: Final = frozenset({"window", "timestamped_window"})

#: The kinds of stores that can be read.
KINDS: Final = _KEY_VALUE | _WINDOW | {"session", "versioned"}


class _Found(NamedTuple):
    """An entry as the store has it. ``times`` are further fields of its JSON."""

    place: EntryPlace
    key: Any
    value: Any
    times: Mapping[str, int | None] = {}


_Finding: TypeAlias = Generator[_Found, None, None]


class Page(NamedTuple):
    """Entries in order; ``more`` follow if it is true. ``kept_from_ms``: of a window or session store without such
    entries, the time before which windows that began, and sessions that ended, have expired."""

    entries: list[Entry]
    more: bool
    kept_from_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A question to a store, with keys as objects of the store: one key and its bytes, or a range. Made by
    ``reading_of``."""

    question: Question
    kind: str
    keys: JsonForm
    values: JsonForm
    key: Any = None
    key_bytes: bytes = b""
    key_from: Any = None
    key_to: Any = None

    @property
    def single(self) -> bool:
        """Whether there is one entry at most."""
        return self.question.key is not None and (self.kind in _KEY_VALUE or self.question.as_of is not None)

    @property
    def time_from(self) -> int:
        return self.question.time_from or 0

    @property
    def time_to(self) -> int:
        return TIME_MAX if self.question.time_to is None else self.question.time_to


def reading_of(question: Question, kind: str, keys: JsonForm, values: JsonForm) -> Reading:
    """The reading for a question. Raises ``BadQueryError`` for a text that is no key of the store, and for parameters
    that stores of its kind do not have."""
    asks_for_times = question.time_from is not None or question.time_to is not None
    named = f"store {question.store} is a {kind.replace('_', '-')} store"
    if asks_for_times and kind not in _WINDOW | {"session"}:
        raise BadQueryError(f"{named}, which has no windows", hint="leave from_time and to_time out")
    if question.as_of is not None and kind != "versioned":
        raise BadQueryError(f"{named}, which has no versions", hint="leave as_of out")
    if question.key is None and kind == "versioned":
        raise BadQueryError(f"{named}, which is read key by key", hint="ask for /stores/NAME/keys/KEY")

    if question.key is not None:
        reading = Reading(question, kind, keys, values, *keys.read_text(question.key))
        if question.after is not None and question.after.key != reading.key_bytes:
            raise BadQueryError(
                "the cursor is not one of this key", hint="give the cursor of the page before as it is"
            )
    else:
        key_from, key_to = _bounds(question, keys)
        reading = Reading(question, kind, keys, values, key_from=key_from, key_to=key_to)
    if reading.single and question.after is not None:
        raise BadQueryError(f"{named}, in which a key has one entry", hint="leave cursor out")
    return reading


def _bounds(question: Question, keys: JsonForm) -> tuple[Any, Any]:
    """The first and the last key of a page. It begins at the cursor, or, if the serde must not read the cursor's bytes,
    at the first key of the range."""
    key_from, lower = (None, b"") if question.key_from is None else keys.read_text(question.key_from)
    key_to, upper = (None, None) if question.key_to is None else keys.read_text(question.key_to)
    if question.after is not None and question.after.key > lower:
        lower = question.after.key
        key_from = keys.key_of(lower) if keys.reads_requests else key_from
    if upper is not None and lower > upper:
        raise BadQueryError(
            "the first key of the range sorts after the last one",
            why="keys sort by their bytes, in which negative numbers follow the positive ones",
            hint="swap from and to",
        )
    return key_from, key_to


def read_page(store: Any, reading: Reading, deadline: Deadline) -> Page:
    """A page of an opened store. Raises ``TooSlowError``."""
    of_key = reading.question.key is not None
    if reading.kind in _KEY_VALUE:
        found = _value_of_key(store, reading) if of_key else _key_values(store, reading)
    elif reading.kind in _WINDOW:
        found = _windows_of_key(store, reading) if of_key else _windows(store, reading)
    elif reading.kind == "session":
        found = _sessions(store, reading)
    else:
        assert reading.kind == "versioned"
        found = _versions(store, reading)
    # A generator that is closed closes the iterator of the store.
    with closing(found):
        wanted = _wanted(found, reading, deadline)
        if reading.kind == "session" or (reading.kind in _WINDOW and not of_key):
            # These stores have another order, so each page has to read all entries of the question.
            wanted = iter(heapq.nsmallest(reading.question.limit + 1, wanted, key=lambda entry: entry.place))
        page = _page(wanted, reading)
    if not page.entries and (reading.kind in _WINDOW or reading.kind == "session"):
        return Page([], more=False, kept_from_ms=max(0, store.first_visible_ms))
    return page


# By kind


def _value_of_key(store: Any, reading: Reading) -> _Finding:
    value = store.get(reading.key)
    if value is not None:
        yield _Found(EntryPlace(reading.key_bytes), reading.key, value)


def _key_values(store: Any, reading: Reading) -> _Finding:
    place = reading.keys.place_bytes
    with store.range(reading.key_from, reading.key_to) as entries:
        if reading.kind == "list":
            # Each element is an entry.
            for key, elements in groupby(entries, key=lambda entry: entry[0]):
                yield _Found(EntryPlace(place(key)), key, [element for _, element in elements])
        else:
            for key, value in entries:
                yield _Found(EntryPlace(place(key)), key, value)


def _windows_of_key(store: Any, reading: Reading) -> _Finding:
    key, key_bytes = reading.key, reading.key_bytes
    after = reading.question.after
    time_from = max(_visible_from(store, reading), 0 if after is None else after.start)
    same_start, last_start = 0, -1
    with store.fetch(key, time_from, reading.time_to) as windows:
        for start, value in windows:
            # A store with duplicates has several entries for one start.
            same_start = same_start + 1 if start == last_start else 0
            last_start = start
            times = {"start": start, "end": start + store.spec.window_size_ms}
            yield _Found(EntryPlace(key_bytes, start, same_start), key, value, times)


def _windows(store: Any, reading: Reading) -> _Finding:
    keys = reading.keys
    time_from = _visible_from(store, reading)
    with store.fetch_range(reading.key_from, reading.key_to, time_from, reading.time_to) as windows:
        for (key, start, end), value in windows:
            yield _Found(EntryPlace(keys.place_bytes(key), start), key, value, {"start": start, "end": end})


def _sessions(store: Any, reading: Reading) -> _Finding:
    keys, span = reading.keys, (_visible_from(store, reading), reading.time_to)
    if reading.question.key is not None:
        found = store.find_sessions(reading.key, *span)
    else:
        found = store.find_sessions_range(reading.key_from, reading.key_to, *span)
    with found as sessions:
        for (key, start, end), value in sessions:
            yield _Found(
                EntryPlace(keys.place_bytes(key), start, end), key, value, {"start": start, "end": end}
            )


def _visible_from(store: Any, reading: Reading) -> int:
    """The first time to read: the start of a window, the end of a session. A cache may still hold expired entries,
    which are not shown, so that an answer does not depend on the cache."""
    visible_from: int = store.first_visible_ms
    return max(reading.time_from, visible_from)


def _versions(store: Any, reading: Reading) -> _Finding:
    key, as_of = reading.key, reading.question.as_of
    if as_of is None:
        found = store.versions(key)
    else:
        version = store.get(key, as_of)
        found = [] if version is None else [version]
    for version in found:
        yield _Found(EntryPlace(reading.key_bytes, version.timestamp), key, version)


# Pages


def _page(found: Iterator[_Found], reading: Reading) -> Page:
    entries: list[Entry] = []
    size = 0
    try:
        for entry in found:
            if is_full(len(entries), size, reading.question.limit):
                return Page(entries, more=True)
            entries.append(_shown(entry, reading))
            size += len(entries[-1].shown)
    except TooSlowError:
        if not entries:
            raise
        return Page(entries, more=True)
    return Page(entries, more=False)


def _wanted(found: Iterable[_Found], reading: Reading, deadline: Deadline) -> Iterator[_Found]:
    """The entries behind the cursor. Raises ``TooSlowError`` at the deadline."""
    after = reading.question.after
    for number, entry in enumerate(found):
        if number % _ENTRIES_PER_LOOK == 0 and deadline.expired():
            raise TooSlowError(
                f"store {reading.question.store} has more entries than can be read in the time of a query",
                hint="ask for a narrower range of keys or times, or for a smaller limit",
            )
        if after is None or entry.place > after:
            yield entry


def _shown(found: _Found, reading: Reading) -> Entry:
    """The JSON object of an entry."""
    fields: dict[str, Any] = {"key": reading.keys.show(found.key), **found.times}
    value = found.value
    if isinstance(value, ValueAndTimestamp):
        fields |= {"value": reading.values.show(value.value), "timestamp": value.timestamp}
    elif isinstance(value, VersionedRecord):
        times = {"timestamp": value.timestamp, "valid_to": value.valid_to}
        fields |= {"value": reading.values.show(value.value), **times}
    elif reading.kind == "list":
        fields["value"] = [reading.values.show(element) for element in value]
    else:
        fields["value"] = reading.values.show(value)
    return Entry(found.place, msgspec.json.encode(fields))

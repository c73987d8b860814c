"""The answer of one process, which may be a part of the whole answer, and the merging of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from pystreams.serving.query_errors import TooSlowError, UnreachableError, nothing_under
from pystreams.serving.stores.questions import EntryPlace, Offsets, Question

T = TypeVar("T")

#: A page ends with the entry that makes it larger than this.
PAGE_BYTES_MAX: Final = 8 << 20


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a store: its place, and the JSON object that clients get."""

    place: EntryPlace
    shown: bytes


class StorePart(msgspec.Struct, frozen=True, omit_defaults=True):
    """``entries`` are in order; ``more``: further ones follow. ``single``: there is at most one entry, whatever the
    page.

    ``read`` are the partitions that were read, of ``partitions`` in total (0: every process has the whole store).
    ``partition`` is that of the key, None if it is not known. For the other partitions, if they are known,
    ``elsewhere`` describes their place as text, ``endpoints`` are the addresses of their owners (``host:port``), and
    ``followers`` those of their standbys.

    ``position`` is the input that the read partitions include. ``lag`` is None if the tasks themselves have answered;
    if a standby has answered, it is the number of changelog records that the standby lacks (-1: not known).

    ``kept_from_ms``, for a window or session store without entries of the key: windows that began, or sessions that
    ended, before this time have expired (0: none have); None if it is not known."""

    entries: list[Entry] = []
    more: bool = False
    read: list[int] = []
    partitions: int = 0
    partition: int | None = None
    elsewhere: dict[int, str] = {}
    endpoints: dict[int, str] = {}
    followers: dict[int, list[str]] = {}
    single: bool = False
    position: Offsets = {}
    lag: int | None = None
    kept_from_ms: int | None = None

    def missing(self) -> set[int]:
        """The partitions that the answer still needs."""
        needed = set(range(self.partitions)) if self.partition is None else {self.partition}
        return needed.difference(self.read)


class StoreInfo(msgspec.Struct, frozen=True):
    """A store, as ``/stores`` lists it. ``key`` and ``value`` are the names of their types; ``here`` are the partitions
    that this instance has, of ``partitions`` in total (0: each instance has the whole store)."""

    name: str
    kind: str
    key: str
    value: str
    partitions: int = 0
    here: list[int] = []


def merged(question: Question, parts: Sequence[StorePart]) -> StorePart:
    """Several parts as one. Their entries are merged in order, up to the point after which a part may have further ones
    in between."""
    last = [part.entries[-1].place for part in parts if part.more and part.entries]
    if any(part.more and not part.entries for part in parts):
        raise TooSlowError(
            f"no entry of store {question.store} was found in the time that a query has",
            hint="ask for a narrower range of keys or times",
        )
    horizon = min(last, default=None)
    entries = sorted((entry for part in parts for entry in part.entries), key=lambda entry: entry.place)
    within = [entry for entry in entries if horizon is None or entry.place <= horizon]
    read = {partition for part in parts for partition in part.read}
    # A key that was found is as old as the partition that has it: what else was searched does not matter.
    having = [part for part in parts if part.entries] if question.key is not None and entries else parts
    # The parts together may be larger than a page.
    page = _first_page(within, question.limit)
    return StorePart(
        page,
        bool(last) or len(within) > len(page),
        sorted(read),
        max((part.partitions for part in parts), default=0),
        next((part.partition for part in parts if part.partition is not None), None),
        _without(read, [part.elsewhere for part in parts]),
        _without(read, [part.endpoints for part in parts]),
        _without(read, [part.followers for part in parts]),
        any(part.single for part in parts),
        _joined_positions([part.position for part in having]),
        _greatest([part.lag for part in having if part.lag is not None]),
        least(part.kept_from_ms for part in parts),
    )


def is_full(entries: int, size: int, limit: int) -> bool:
    """Whether a page with so many ``entries`` of so many bytes ends here."""
    return entries == limit or size > PAGE_BYTES_MAX


def joined(lists: Sequence[Sequence[StoreInfo]]) -> list[StoreInfo]:
    """The stores of several processes of one application, by name."""
    by_name: dict[str, StoreInfo] = {}
    for info in (info for listed in lists for info in listed):
        before = by_name.get(info.name, info)
        here = sorted({*before.here, *info.here})
        partitions = max(before.partitions, info.partitions)
        by_name[info.name] = msgspec.structs.replace(info, partitions=partitions, here=here)
    return [by_name[name] for name in sorted(by_name)]


def settled(question: Question, part: StorePart) -> StorePart:
    """The part, if it is the whole answer. Raises ``AbsentError`` if the key is absent, and ``UnreachableError`` if
    that is not known, or if a part of the range is missing."""
    missing = part.missing()
    if question.key is not None and part.entries:
        return part
    if missing:
        where = "; ".join(
            f"partition {one} {part.elsewhere.get(one, 'was not found')}" for one in sorted(missing)
        )
        what = "" if question.key is None else f"key {question.key[:200]!r} of "
        raise UnreachableError(
            f"{what}store {question.store} cannot be read now",
            why=where,
            hint="ask again in a moment: tasks may be moving to another process",
        )
    if question.key is not None and question.after is None:
        read = "all of it was read" if part.partition is None else f"partition {part.partition} was read"
        raise nothing_under(question.key, question.store, read, part.kept_from_ms)
    return part


def least(times_ms: Iterable[int | None]) -> int | None:
    """The earliest of the known times; None if none is known."""
    return min((time_ms for time_ms in times_ms if time_ms is not None), default=None)


def _first_page(entries: list[Entry], limit: int) -> list[Entry]:
    size = 0
    for number, entry in enumerate(entries):
        if is_full(number, size, limit):
            return entries[:number]
        size += len(entry.shown)
    return entries


def _without(read: set[int], maps: Sequence[Mapping[int, T]]) -> dict[int, T]:
    return {one: known for found in maps for one, known in found.items() if one not in read}


def _joined_positions(positions: Sequence[Offsets]) -> Offsets:
    found: Offsets = {}
    for position in positions:
        for topic, offsets in position.items():
            found.setdefault(topic, {}).update(offsets)
    return found


def _greatest(lags: Sequence[int]) -> int | None:
    """The greatest lag; an unknown lag counts as greater."""
    return -1 if -1 in lags else max(lags, default=None)

"""The boundary between a table and the log behind it: what each of them holds there, and what looks like a loss.

A table without offsets does not show which records it lacks, but times do show where something is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from pystreams.errors import OffsetOutOfRangeError
from pystreams.times import show_time, spell_ms, unit_remark

#: Records before the year 2000 are rare, timestamps in another unit are not.
_YEAR_2000_MS: Final = 946_684_800_000
_DAY_MS: Final = 86_400_000
#: So many times the mean distance of two rows is not a pause by chance.
_DISTANCES: Final = 10


class Remark(NamedTuple):
    """A sentence about the source of a topic: what is at the boundary, or a warning."""

    kind: Literal["boundary", "warning"]
    topic: str
    text: str


@dataclass(frozen=True, slots=True)
class Times:
    """The number of records, and the least and the greatest timestamp (ms). None: not known, or there are none."""

    records: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def __add__(self, other: Times) -> Times:
        firsts = [ms for ms in (self.first_ms, other.first_ms) if ms is not None]
        lasts = [ms for ms in (self.last_ms, other.last_ms) if ms is not None]
        return Times(self.records + other.records, min(firsts, default=None), max(lasts, default=None))


@dataclass(frozen=True, slots=True)
class Seam:
    """A topic around its boundary.

    ``table`` are the rows before the boundary, ``unused`` those at or after it, and ``log`` the records of the log from
    the boundary on. ``complete``: the log has records from before the boundary, so it has lost none behind it.
    """

    topic: str
    where: str
    boundary_ms: int
    table: Times
    unused: Times
    log: Times
    complete: bool

    def check(self) -> None:
        """Raises ``OffsetOutOfRangeError`` if the table has rows that neither it nor the log gives: rows of the
        boundary or later, before the first record of the log."""
        first, log_first = self.unused.first_ms, self.log.first_ms
        boundary = show_time(self.boundary_ms)
        if first is None:
            return
        if not self.log.records:
            log = f"the log has no record at or after {boundary}"
        elif log_first is not None and not self.complete and first < log_first:
            log = f"the first record of the log is of {show_time(log_first)}"
        else:
            return
        raise OffsetOutOfRangeError(
            f"records of topic {self.topic} would be lost behind the boundary",
            where=self.where,
            why=f"from {boundary} on, records come from the log; the table has some from {show_time(first)} on, "
            f"but {log}",
            hint="choose a boundary that is later than the first record of the log, and up to which the table has all "
            "records",
        )

    def remarks(self, now_ms: int) -> list[Remark]:
        """What there is at the boundary, and warnings of what looks like a loss."""
        warnings = [*self._of_units(now_ms), *self._of_gaps()]
        return [
            Remark("boundary", self.topic, self._text()),
            *(Remark("warning", self.topic, text) for text in warnings),
        ]

    def _text(self) -> str:
        table, log = self.table, self.log
        rows = f"table: {table.records:,} rows"
        if table.first_ms is not None and table.last_ms is not None:
            rows += f", {show_time(table.first_ms)} to {show_time(table.last_ms)}"
        since = "" if log.first_ms is None else f" from {show_time(log.first_ms)}"
        return f"{rows}; log: {log.records:,} records{since}; boundary: {show_time(self.boundary_ms)}"

    def _of_units(self, now_ms: int) -> Iterator[str]:
        every = self.table + self.unused
        if every.first_ms is not None and every.first_ms < _YEAR_2000_MS:
            yield _of_unit(every.first_ms, "rows of the table are older than the year 2000")
        if every.last_ms is not None and every.last_ms > now_ms:
            yield _of_unit(every.last_ms, "rows of the table are from the future")

    def _of_gaps(self) -> Iterator[str]:
        table, log, boundary = self.table, self.log, show_time(self.boundary_ms)
        # People mean a gap in days. A table with a row a week has such gaps everywhere, so the usual distance of its
        # rows counts, too.
        large = _DAY_MS
        if table.last_ms is None:
            had = (
                f": it begins at {show_time(self.unused.first_ms)}"
                if self.unused.first_ms is not None
                else ""
            )
            yield f"no row of the table is before the boundary, {boundary}{had}; all records come from the log"
        else:
            span = table.last_ms - (table.first_ms or 0)
            large = max(large, _DISTANCES * span // max(table.records - 1, 1))
            if (gap := self.boundary_ms - table.last_ms) > large:
                yield (
                    f"the table ends at {show_time(table.last_ms)}, {spell_ms(gap)} before the boundary: if there were "
                    "records in between, they are lost; load them into the table, or choose an earlier boundary"
                )
        if not log.records:
            yield f"no record of the log is at or after the boundary, {boundary}; all records come from the table"
        elif log.first_ms is None:
            yield (
                "the time of the log's first record behind the boundary is not known, so nobody can say whether "
                "records before it are lost"
            )
        elif (gap := log.first_ms - self.boundary_ms) > large:
            yield (
                f"the log begins at {show_time(log.first_ms)}, {spell_ms(gap)} behind the boundary: if there were "
                "records in between, they are lost; choose a later boundary, up to which the table has all records"
            )


@runtime_checkable
class Bounded(Protocol):
    """A source that is a table up to a boundary, and then a log."""

    @property
    def boundary_ms(self) -> int: ...

    def seam(self) -> Seam:
        """What is at the boundary."""
        ...


def _of_unit(timestamp_ms: int, what: str) -> str:
    unit = unit_remark(timestamp_ms)
    return f"{what}: {unit or show_time(timestamp_ms)}" + ("" if unit else "; check the unit and the column")

"""Describes records that a step dropped because their window had closed: how late they were, and the grace that they
needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from pystreams.errors import DroppedRecordError
from pystreams.plural import counted, plural
from pystreams.times import AHEAD_MAX_MS, FAR_FUTURE_MS, show_time, spell_ms

#: Why a step drops records that are too late for it.
WINDOW_CLOSED: Final = "the window has closed"

#: Why a record of a join has no partners any more.
PARTNERS_GONE: Final = "the other side of the join has forgotten records of its window"

#: If a step drops a greater part of its records than this, a warning with the remedy is logged.
MANY: Final = 0.01

#: The year 2001. An earlier clock is that of a test: it often begins at 0, while records have times of today.
_REAL_CLOCK_MS: Final = 978_307_200_000

#: 50 years. A record that is later than this has a time in 1970, because its timestamp is in seconds.
_DECADES_MS: Final = 50 * 365 * 86_400_000

#: One line names no more steps than this.
_STEPS_NAMED_MAX: Final = 3


class Late(NamedTuple):
    """A record that is too late: its key, value and timestamp at the step, the stream time there, and the grace with
    which its window would still be open. ``now_ms`` is the clock's time. ``kept``: what that grace would have kept.
    """

    key: Any
    value: Any
    timestamp: int
    stream_time: int
    grace_ms: int
    now_ms: int
    kept: str = "it"

    @property
    def late_ms(self) -> int:
        """The distance from stream time."""
        return self.stream_time - self.timestamp

    @property
    def ahead_time(self) -> int:
        """Stream time if it is more than a day ahead of the clock because of a wrong timestamp, for which no grace
        helps; otherwise 0."""
        return ahead_of_clock(self.stream_time, self.now_ms)

    @property
    def spelled(self) -> str:
        """``stream time was 2026-03-01T12:00:58Z, so it was 57 s late; a grace of at least ...``."""
        return f"{self._why}; {self._remedy}"

    @property
    def _why(self) -> str:
        return f"stream time was {show_time(self.stream_time)}, so it was {spell_ms(self.late_ms)} late"

    @property
    def _remedy(self) -> str:
        if self.ahead_time:
            return f"stream time is ahead of the clock: {_wrong_timestamp(self.ahead_time)}"
        if self.late_ms > _DECADES_MS:
            return f"its {_IN_SECONDS}"
        return f"a grace of at least {spell_ms(self.grace_ms)} would have kept {self.kept}"

    def error(self, what: str, step: str) -> DroppedRecordError:
        """The error that the record's dead letter carries."""
        facts = {
            "step": step,
            "stream_time": self.stream_time,
            "late_ms": self.late_ms,
            "grace_ms": self.grace_ms,
        }
        return DroppedRecordError(
            what, why=self._why, hint=self._remedy, facts={name: str(value) for name, value in facts.items()}
        )


def ahead_of_clock(stream_time: int, now_ms: int) -> int:
    """Stream time if it is more than a day ahead of the clock, else 0."""
    limit_ms = now_ms + AHEAD_MAX_MS if now_ms >= _REAL_CLOCK_MS else FAR_FUTURE_MS
    return stream_time if stream_time > limit_ms else 0


#: Why a record is decades late.
_IN_SECONDS: Final = "timestamp is most likely in seconds; timestamps are milliseconds since 1970"


def _wrong_timestamp(stream_time: int) -> str:
    """Why stream time is ahead of the clock."""
    is_far = stream_time >= FAR_FUTURE_MS
    what = "most likely in microseconds or nanoseconds" if is_far else "in the future"
    return f"a record's timestamp is {what} (pystreams doctor APP names such records)"


def readable_bytes(value: object) -> bytes | None:
    """Bytes for a key or value whose serialized bytes are not known: those of bytes and text; other objects become
    JSON, or their ``repr`` if that fails."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    try:
        return msgspec.json.encode(value, enc_hook=repr)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value).encode("utf-8", "replace")


class LateRecords(NamedTuple):
    """The records that one step has dropped because they were too late. For a join of streams, they include records
    that it has not dropped, but that were too late for records of the other stream.

    ``store`` is the step's store, if the program named it. ``late_ms`` is the greatest distance of a record from stream
    time; with a grace of ``grace_ms`` no record would have been too late. ``read`` counts the records that were read
    from the topics that lead to the step. ``unbounded``: because of ``stream_time=java``, stream time at the step does
    not wait for upstream tasks. ``ahead_time`` is the greatest stream time that was more than a day ahead of the clock
    when a record was too late; 0: there was none.
    """

    step: str
    store: str = ""
    records: int = 0
    late_ms: int = 0
    grace_ms: int = 0
    read: int = 0
    unbounded: bool = False
    ahead_time: int = 0

    def and_more(self, records: int, late_ms: int, grace_ms: int, ahead_time: int = 0) -> LateRecords:
        """A copy to which these records are added."""
        return self._replace(
            records=self.records + records,
            late_ms=max(self.late_ms, late_ms),
            grace_ms=max(self.grace_ms, grace_ms),
            ahead_time=max(self.ahead_time, ahead_time),
        )

    @property
    def many(self) -> bool:
        """True if they are a considerable part of the step's records."""
        return self.records > MANY * self.read

    @property
    def where(self) -> str:
        """Step and store."""
        return spell_step(self.step, self.store)

    @property
    def has_wrong_times(self) -> bool:
        """Whether a wrong timestamp made the records late, for which no grace helps."""
        return bool(self.ahead_time) or self.late_ms > _DECADES_MS

    @property
    def remedy(self) -> str:
        """``up to 57 s late; a grace of at least 47.001 s would have kept them``; or why no grace would."""
        up_to, them, whose = ("", "it", "its") if self.records == 1 else ("up to ", "them", "a record's")
        late = f"{up_to}{spell_ms(self.late_ms)} late"
        if self.ahead_time:
            shown = show_time(self.ahead_time)
            return f"{late}; stream time ({shown}) is ahead of the clock: {_wrong_timestamp(self.ahead_time)}"
        if self.late_ms > _DECADES_MS:
            return f"{late}; {whose} {_IN_SECONDS}"
        text = f"{late}; a grace of at least {spell_ms(self.grace_ms)} would have kept {them}"
        return (
            f"{text}, or stream_time=bounded if the application was catching up" if self.unbounded else text
        )

    @property
    def numbers(self) -> str:
        """How many and how late: ``2 of 10 records (20 %), up to 57 s late; a grace of ...``."""
        if not self.read:
            return f"{counted(self.records, 'record')}, {self.remedy}"
        share = spell_share(self.records, self.read)
        return f"{self.records:,} of {self.read:,} records ({share}), {self.remedy}"


def spell_step(step: str, store: str) -> str:
    """``step COUNT (store counts)``."""
    return f"step {step} (store {store})" if store else f"step {step}"


def spell_share(part: int, whole: int) -> str:
    """``12 %``, ``0.31 %``; never 0 for a part that is not empty."""
    percent = 100 * part / whole
    if percent < 0.01:
        return "less than 0.01 %"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def add_up(counts: Iterable[LateRecords]) -> list[LateRecords]:
    """One element for each step that has dropped records, the one that has dropped most first."""
    by_step: dict[str, LateRecords] = {}
    for one in counts:
        other = by_step.get(one.step, LateRecords(one.step))
        by_step[one.step] = LateRecords(
            one.step,
            one.store or other.store,
            one.records + other.records,
            max(one.late_ms, other.late_ms),
            max(one.grace_ms, other.grace_ms),
            one.read + other.read,
            one.unbounded or other.unbounded,
            max(one.ahead_time, other.ahead_time),
        )
    found = [one for one in by_step.values() if one.records]
    return sorted(found, key=lambda one: (-one.records, one.step))


def late_text(found: Sequence[LateRecords]) -> str:
    """``too late for step COUNT: 2 of 10 records (20 %), up to 57 s late; a grace ...``, for each step."""
    texts = [_text(one) for one in found[:_STEPS_NAMED_MAX]]
    if more := found[_STEPS_NAMED_MAX:]:
        records = sum(one.records for one in more)
        texts.append(f"too late for {len(more)} other {plural(len(more), 'step')}: {records:,}")
    return "; ".join(texts)


def _text(late: LateRecords) -> str:
    return f"too late for {late.where}: {late.numbers}"

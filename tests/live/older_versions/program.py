"""The application whose files are recorded, what it reads, and its clock.

Older recordings were made by this program, so it must not change: a new kind of store is for another program.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pystreams import JoinWindows, SessionWindows, Suppressed, TimeWindows, agg
from pystreams.app import App
from pystreams.dsl.windows import EmitStrategy
from pystreams.runtime.streams import Streams
from pystreams.serde import INT, STR
from tests.live.restore_kit import Listener
from tests.live.support import TIMEOUT_S, Log, caught_up

APPLICATION = "recorded"
INPUTS = ("sold", "prices", "seen")
OUTPUTS = ("totals", "rows", "minutes", "held", "visits", "priced", "waited", "pairs")


def changelog_of(store: str) -> str:
    return f"{APPLICATION}-{store}-changelog-0"


#: The changelogs of stores whose records are never deleted one by one: they are not compacted, so they keep no
#: deletions, and the stores do not grow too old for them.
WITHOUT_DELETIONS = {
    changelog_of("pairs-outer-this-join-store"),
    changelog_of("pairs-outer-other-join-store"),
}
_COMPACTED = (
    "totals",
    "rows",
    "minutes",
    "hops",
    "visits",
    "prices",
    "wait-Buffer",
    "pairs-outer-shared-join-store",
)
#: The changelogs of all stores on disk.
ON_DISK = WITHOUT_DELETIONS | {changelog_of(store) for store in _COMPACTED}
#: The changelog of the buffer of ``suppress``.
IN_MEMORY = changelog_of("held-store")

#: The time of the first record: the beginning of 2026. All times are fixed, so results do not depend on the date.
FIRST_MS = 1_767_225_600_000
#: The time at which the files were written.
RECORDED_MS = FIRST_MS + 3_600_000

RECORDS, HALF = 320, 160


class Sale(msgspec.Struct):
    """A value whose fields are aggregated."""

    amount: int


class ClockFrom:
    """A clock that goes on from a given time. By today's clock, recorded state and snapshots would be older than the
    day for which changelogs keep deletions, and would not be used."""

    def __init__(self, now_ms: int) -> None:
        self._ahead_ms = now_ms - self.monotonic_ms()

    def now_ms(self) -> int:
        return int(self._ahead_ms + self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6


def history() -> list[tuple[str, str, int, int]]:
    """(topic, key, value, timestamp): out of order, but nothing in the second half is earlier than in the first."""
    return [
        (
            ("sold", "prices", "sold", "seen")[number % 4],
            f"k{number * number % 7}",
            number,
            FIRST_MS + 500 * number - (0 if number % HALF < 20 else number * 7 % 5 * 900),
        )
        for number in range(RECORDS)
    ]


def program(log: Log) -> App:
    """All kinds of stores, and most steps that keep something for later."""
    app = log.app(
        APPLICATION,
        state_snapshot_dir=str(snapshots_of(log)),
        state_snapshot_interval_ms=100,
        commit_interval_ms=100,
        statestore_cache_max_bytes=0,
        window_changelog_retention_ms=-1,
    )
    sold = app.stream("sold", key=str, value=int)
    prices = app.table("prices", key=str, value=int, name="prices", history=60_000)
    by_key = sold.group_by_key()

    by_key.count(name="totals").to_stream().to("totals")
    sales = sold.map_values(Sale, value=Sale).group_by_key()
    rows = sales.aggregate(
        mean=agg.mean("amount"), last=agg.last("amount"), best=agg.top(2, "amount", by="amount"), name="rows"
    )
    rows.to_stream().to("rows")

    closed: Any = by_key.windowed_by(TimeWindows.tumbling(20_000, grace=5_000))
    minutes = closed.emit_strategy(EmitStrategy.on_window_close()).count(name="minutes")
    minutes.to_stream(shown, key=str).to("minutes")
    hopping = by_key.windowed_by(TimeWindows.hopping(20_000, advance=10_000, grace=5_000)).count(name="hops")
    held = hopping.suppress(Suppressed.until_window_closes(), step="held")
    held.to_stream(shown, key=str).to("held")
    visits = by_key.windowed_by(SessionWindows.of(4_000, grace=8_000)).count(name="visits")
    visits.to_stream(shown, key=str).to("visits")

    sold.left_join(prices, pair, value=str).to("priced")
    sold.left_join(prices, pair, value=str, grace=6_000, step="wait").to("waited")
    seen = app.stream("seen", key=str, value=int)
    windows = JoinWindows.of(4_000, grace=2_000)
    sold.outer_join(seen, pair, windows=windows, value=str, name="pairs").to("pairs")
    return app


def pair(one: int | None, two: int | None) -> str:
    return f"{one}+{two}"


def shown(window: Any, _: object) -> str:
    return str(window)


def snapshots_of(log: Log) -> Path:
    return log.path / "snapshots"


def open_at(path: Path, now_ms: int) -> tuple[Log, ClockFrom]:
    clock = ClockFrom(now_ms)
    return Log(path, clock=clock), clock


def write(log: Log, records: list[tuple[str, str, int, int]]) -> None:
    """All topics at once: who is running sees all or nothing."""
    encode_key, encode = STR.serializer("in"), INT.serializer("in")
    with closing(log.broker.producer("history", "history")) as producer:
        for topic, key, value, timestamp in records:
            producer.send(topic, None, encode_key(key), encode(value), timestamp, ())
        producer.commit({}, None)


@contextmanager
def started(log: Log, clock: ClockFrom) -> Iterator[tuple[Streams, Listener]]:
    """A client that has processed everything, and what it has restored."""
    streams, listener = Streams(program(log), broker=log.broker, clock=clock), Listener()
    streams.set_restore_listener(listener)
    streams.start()
    try:
        caught_up(streams)
        yield streams, listener
    finally:
        streams.close(1000 * TIMEOUT_S)


def results(log: Log) -> dict[str, Any]:
    """Everything that the program has written, in order."""
    return {topic: log.read(topic, key=bytes, value=bytes) for topic in OUTPUTS}

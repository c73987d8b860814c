"""One program for each kind of step that depends on stream time. All read ``in`` (joins also ``other``), and write text
to ``out``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pystreams import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)

Build = Callable[[StreamsBuilder], Any]

GRACE = 20
#: Joins join records that are not further apart.
APART = 15


def windowed(windows: Any, *, on_close: bool = False, suppressed: bool = False) -> Build:
    """Counts by key and window."""

    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
        counts = (grouped.emit_strategy(EmitStrategy.on_window_close()) if on_close else grouped).count()
        if suppressed:
            counts = counts.suppress(Suppressed.until_window_closes())
        counts.to_stream(lambda window, _: str(window), key=str).map_values(str).to("out", key=str, value=str)

    return build


def twice(builder: StreamsBuilder) -> None:
    """Final counts by key and window, and the final sums of these over longer windows."""
    final = Suppressed.until_window_closes()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    counts = grouped.windowed_by(TimeWindows.tumbling(10, grace=GRACE)).count().suppress(final)
    again = counts.to_stream().group_by_key().windowed_by(TimeWindows.tumbling(40, grace=50))
    sums = again.aggregate(int, lambda total, count: total + count, value=int).suppress(final)
    sums.to_stream(lambda window, _: str(window), key=str).map_values(str).to("out", key=str, value=str)


def joined(how: str) -> Build:
    """Two streams, joined by time."""

    def build(builder: StreamsBuilder) -> None:
        one, other = (builder.stream(topic, key=str, value=str) for topic in ("in", "other"))
        windows = JoinWindows.of(APART, grace=GRACE)
        pairs = getattr(one, how)(other, lambda left, right: f"{left}+{right}", windows=windows, value=str)
        pairs.to("out", key=str, value=str)

    return build


def with_itself(builder: StreamsBuilder) -> None:
    one = builder.stream("in", key=str, value=str)
    windows = JoinWindows.of(APART, grace=GRACE)
    pairs = one.join(one, lambda left, right: f"{left}+{right}", windows=windows, value=str)
    pairs.to("out", key=str, value=str)


def with_rows_of_their_time(builder: StreamsBuilder) -> None:
    """A stream whose records wait for late rows of a table that keeps versions. A record waits until a later one of the
    stream comes: so long is the history that the table still knows the row of its time then."""
    rows = builder.table("other", key=str, value=str, name="rows", history=1_000)
    stream = builder.stream("in", key=str, value=str)
    pairs = stream.left_join(rows, lambda one, row: f"{one}+{row}", value=str, grace=GRACE)
    pairs.to("out", key=str, value=str)


WINDOWS: Mapping[str, Any] = {
    "tumbling": TimeWindows.tumbling(10, grace=GRACE),
    "hopping": TimeWindows.hopping(12, advance=5, grace=GRACE),
    "sliding": SlidingWindows.of(10, grace=GRACE),
    "sessions": SessionWindows.of(6, grace=GRACE),
}

#: Emit each change: the last one of a key counts.
UPDATING: Mapping[str, Build] = {kind: windowed(windows) for kind, windows in WINDOWS.items()}

#: Emit final results, each once.
FINAL: Mapping[str, Build] = {
    **{f"{kind}, on close": windowed(windows, on_close=True) for kind, windows in WINDOWS.items()},
    **{f"{kind}, suppressed": windowed(windows, suppressed=True) for kind, windows in WINDOWS.items()},
    "two windows, suppressed": twice,
    "inner join": joined("join"),
    "left join": joined("left_join"),
    "outer join": joined("outer_join"),
    "self-join": with_itself,
    "join with versions": with_rows_of_their_time,
}

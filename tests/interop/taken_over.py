"""The applications that go from one language to the other: ``java/TakenOver.java`` has the same.

What an application writes goes to a topic of its run: ``counts`` of the run "kept" writes to ``counts-kept``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from pystreams import (
    App,
    EmitStrategy,
    JoinWindows,
    KStream,
    KTable,
    SessionWindows,
    Suppressed,
    TimeWindows,
    Windowed,
)
from pystreams.serde import INT, STR, Serde, SessionWindowedSerde, TimeWindowedSerde

SIZE_MS, GRACE_MS = 10_000, 5_000
GAP_MS = 4_000
MEETING_MS = 3_000
RETENTION_MS = 3_600_000

TUMBLING = TimeWindows.tumbling(SIZE_MS, grace=GRACE_MS)
HOPPING = TimeWindows.hopping(SIZE_MS, advance=SIZE_MS // 2, grace=GRACE_MS)
SESSIONS = SessionWindows.of(GAP_MS, grace=GRACE_MS)
MEETING = JoinWindows.of(MEETING_MS, grace=GRACE_MS)


class Gate:
    """Where a stream thread is held up in the middle of its work."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._reached = threading.Event()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    @property
    def reached(self) -> bool:
        """Somebody has come to it while it was closed."""
        return self._reached.is_set()

    def pass_through(self, _key: object, _value: object) -> None:
        """Called by stream threads, for each record."""
        if not self._open.is_set():
            self._reached.set()
            self._open.wait()


def counts(app: App) -> KStream[str, int]:
    lines = app.stream("counts-in", key=str, value=str).flat_map_values(str.split)
    words = lines.group_by(lambda word: word, key=str, repartition="by-word")
    return words.count(name="counted").to_stream()


def windowed(app: App, name: str, windows: TimeWindows, emit: EmitStrategy) -> KTable[Windowed[str], int]:
    grouped = app.stream(f"{name}-in", key=str, value=int).group_by_key()
    return (
        grouped.windowed_by(windows)
        .emit_strategy(emit)
        .reduce(int.__add__, name=f"{name}-sums", retention=RETENTION_MS)
    )


def windows(app: App, name: str = "windows") -> KStream[Windowed[str], int]:
    return windowed(app, name, HOPPING, EmitStrategy.on_window_update()).to_stream()


def exact_windows(app: App) -> KStream[Windowed[str], int]:
    """Each side works exactly once."""
    return windows(app, "exact-windows")


def closes(app: App) -> KStream[Windowed[str], int]:
    return windowed(app, "closes", TUMBLING, EmitStrategy.on_window_close()).to_stream()


def suppressed(app: App) -> KStream[Windowed[str], int]:
    sums = windowed(app, "suppressed", TUMBLING, EmitStrategy.on_window_update())
    return sums.suppress(Suppressed.until_window_closes(), step="final").to_stream()


def sessions(app: App) -> KStream[Windowed[str], int]:
    grouped = app.stream("sessions-in", key=str, value=int).group_by_key()
    table = grouped.windowed_by(SESSIONS).aggregate(
        int, int.__add__, int.__add__, name="session-sums", value=int
    )
    return table.to_stream()


def table(app: App, name: str, side: str) -> KTable[str, str]:
    return app.table(f"{name}-{side}", key=str, value=str, name=f"{name}-{side}-rows")


def pair(left: object, right: object) -> str:
    """As Java shows it."""
    shown = ("null" if value is None else str(value) for value in (left, right))
    return "+".join(shown)


def tables(app: App, name: str = "tables") -> KStream[str, str]:
    left, right = table(app, name, "left"), table(app, name, "right")
    return left.outer_join(right, pair, name=f"{name}-joined-rows", value=str).to_stream()


def optimized(app: App) -> KStream[str, str]:
    """Its source tables have no changelogs: their topics take that part."""
    return tables(app, "optimized")


def foreign_key(row: str) -> str:
    return row.split("|", maxsplit=1)[0]


def foreign(app: App) -> KStream[str, str]:
    left, right = table(app, "foreign", "left"), table(app, "foreign", "right")
    joined = left.join(
        right, pair, foreign_key=foreign_key, step="foreign-join", name="foreign-joined-rows", value=str
    )
    return joined.to_stream()


def foreign_left(app: App) -> KStream[str, str]:
    left, right = table(app, "foreign-left", "left"), table(app, "foreign-left", "right")
    joined = left.left_join(
        right,
        pair,
        foreign_key=foreign_key,
        step="foreign-left-join",
        name="foreign-left-joined-rows",
        value=str,
    )
    return joined.to_stream()


def meetings(app: App) -> KStream[str, str]:
    left = app.stream("meetings-left", key=str, value=int)
    right = app.stream("meetings-right", key=str, value=int)
    return left.outer_join(right, pair, windows=MEETING, step="meeting", name="meeting", value=str)


def group_of(row: str) -> tuple[str, int]:
    group, number = row.split("|")
    return group, int(number)


def regrouped(app: App) -> KStream[str, int]:
    groups = table(app, "regrouped", "in").group_by(group_of, key=str, value=int, repartition="by-group")
    return groups.aggregate(int, int.__add__, int.__sub__, name="group-sums").to_stream()


class Taken(NamedTuple):
    """An application: its steps, the topics that it reads and makes, and the serdes of what it writes."""

    steps: Callable[[App], KStream[Any, Any]]
    inputs: tuple[str, ...]
    #: Of the topics between its own sub-topologies, the name behind the application's id.
    between: tuple[str, ...]
    #: As those.
    changelogs: tuple[str, ...]
    key: Serde[Any]
    value: Serde[Any]
    topology_optimization: str = "none"
    processing_guarantee: str = "at_least_once"


def _of_foreign_join(name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    step = f"{name}-join"
    return (
        (f"{name}-left", f"{name}-right"),
        (f"{step}-subscription-registration-topic", f"{step}-subscription-response-topic"),
        (
            f"{name}-left-rows-changelog",
            f"{name}-right-rows-changelog",
            f"{step}-subscription-store-changelog",
            f"{name}-joined-rows-changelog",
        ),
    )


_WINDOWED = TimeWindowedSerde(STR, SIZE_MS)

TAKEN: dict[str, Taken] = {
    "counts": Taken(counts, ("counts-in",), ("by-word-repartition",), ("counted-changelog",), STR, INT),
    "windows": Taken(windows, ("windows-in",), (), ("windows-sums-changelog",), _WINDOWED, INT),
    "closes": Taken(closes, ("closes-in",), (), ("closes-sums-changelog",), _WINDOWED, INT),
    "suppressed": Taken(
        suppressed,
        ("suppressed-in",),
        (),
        ("suppressed-sums-changelog", "final-store-changelog"),
        _WINDOWED,
        INT,
    ),
    "sessions": Taken(
        sessions, ("sessions-in",), (), ("session-sums-changelog",), SessionWindowedSerde(STR), INT
    ),
    "tables": Taken(
        tables,
        ("tables-left", "tables-right"),
        (),
        ("tables-left-rows-changelog", "tables-right-rows-changelog", "tables-joined-rows-changelog"),
        STR,
        STR,
    ),
    "optimized": Taken(
        optimized,
        ("optimized-left", "optimized-right"),
        (),
        ("optimized-joined-rows-changelog",),
        STR,
        STR,
        "all",
    ),
    "foreign": Taken(foreign, *_of_foreign_join("foreign"), STR, STR),
    "foreign-left": Taken(foreign_left, *_of_foreign_join("foreign-left"), STR, STR),
    "meetings": Taken(
        meetings,
        ("meetings-left", "meetings-right"),
        (),
        (
            "meeting-outer-this-join-store-changelog",
            "meeting-outer-other-join-store-changelog",
            "meeting-outer-shared-join-store-changelog",
        ),
        STR,
        STR,
    ),
    "regrouped": Taken(
        regrouped,
        ("regrouped-in",),
        ("by-group-repartition",),
        ("regrouped-in-rows-changelog", "group-sums-changelog"),
        STR,
        INT,
    ),
    "exact-windows": Taken(
        exact_windows,
        ("exact-windows-in",),
        (),
        ("exact-windows-sums-changelog",),
        _WINDOWED,
        INT,
        processing_guarantee="exactly_once_v2",
    ),
}


def taken_over(name: str, run: str, gate: Gate, **settings: Any) -> App:
    taken = TAKEN[name]
    app = App(f"{name}-{run}", topology_optimization=taken.topology_optimization, **settings)
    taken.steps(app).peek(gate.pass_through).to(f"{name}-{run}")
    return app

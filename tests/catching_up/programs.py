"""The application of a trial, as users write theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams import App, EmitStrategy, JoinWindows, SessionWindows, SlidingWindows, Suppressed, TimeWindows
from tests.catching_up.trials import (
    LEFT,
    OUT,
    RIGHT,
    ROWS,
    Changing,
    Join,
    Lookup,
    Rekey,
    Table,
    Trial,
    Versions,
    Windows,
    new_key,
    pair,
    row_key,
    union,
)

NAME = "catching-up"


def application(trial: Trial, seen: Callable[[str], None] = lambda _: None, **settings: Any) -> App:
    """The trial's topology. ``seen`` is called with the id of each record of a source that is processed."""
    # The inputs' timestamps are fixed: no broker may delete them for their age.
    app = App(NAME, window_changelog_retention_ms=-1, **settings)
    if isinstance(trial.steps[0], Changing):
        _changing(app, trial.steps[0], seen).to_stream().to(OUT, key=str, value=str)
        return app
    joins = any(isinstance(step, Join) for step in trial.steps)
    stream = app.stream(LEFT, key=str, value=str).peek(seen)
    other = app.stream(RIGHT, key=str, value=str).peek(seen) if joins else None
    for number, step in enumerate(trial.steps):
        match step:
            case Table():
                rows = app.table(ROWS, key=str, value=str)
                join = stream.left_join if step.left else stream.join
                stream = join(rows, pair, value=str)
            case Rekey():
                stream = _rekeyed(stream, step, f"hop-{number}")
                other = None if other is None else _rekeyed(other, step, f"hop-{number}-right")
            case Versions(left=left, grace_ms=grace, history_ms=history):
                versions = app.table(ROWS, key=str, value=str, name="versions", history=history)
                join = stream.left_join if left else stream.join
                stream = join(versions, pair, grace=grace, value=str)
            case Lookup(left=left):
                everywhere = app.global_table(ROWS, key=str, value=str)
                join = stream.left_join if left else stream.join
                # The new key is a function of the value.
                hop = next(one for one in trial.steps if isinstance(one, Rekey))
                stream = join(everywhere, pair, key_fn=lambda value, hop=hop: new_key(value, hop), value=str)
            case Windows():
                stream = _windowed(stream, step, f"windows-{number}")
            case Join():
                stream, other = _joined(stream, other, step, f"join-{number}"), None
    stream.to(OUT, key=str, value=str)
    return app


def _changing(app: App, step: Changing, seen: Callable[[str], None]) -> Any:
    def look(value: str) -> str:
        seen(value)
        return value

    def table(topic: str) -> Any:
        return app.table(topic, key=str, value=str).map_values(look, value=str)

    if step.of == "foreign":
        left, right = table(LEFT), app.table(RIGHT, key=str, value=str)
        join = left.left_join if step.kind == "left" else left.join
        return join(right, pair, foreign_key=row_key, value=str)
    grouped = _grouped(table(LEFT), step, "left")
    if step.of == "aggregate":
        return grouped
    join = grouped.left_join if step.kind == "left" else grouped.join
    return join(_grouped(app.table(RIGHT, key=str, value=str), step, "right"), pair, value=str)


def _grouped(table: Any, step: Changing, name: str) -> Any:
    by_key = table.group_by(lambda value: (new_key(value, step.by), value), key=str, value=str)
    return by_key.aggregate(str, union, _without, name=name, value=str)


def _without(total: str, value: str) -> str | None:
    """The set without one element; no row if it was the last."""
    return " ".join(one for one in total.split() if one != value) or None


def _rekeyed(stream: Any, rekey: Rekey, name: str) -> Any:
    by_key = stream.select_key(lambda value: new_key(value, rekey), key=str)
    return by_key.repartition(name=name, key=str, value=str, partitions=rekey.partitions)


def _windowed(stream: Any, windows: Windows, name: str) -> Any:
    size, grace = windows.size_ms, windows.grace_ms
    merger: tuple[Any, ...] = ()
    match windows.kind:
        case "tumbling":
            kind: Any = TimeWindows.tumbling(size, grace=grace)
        case "hopping":
            kind = TimeWindows.hopping(size, advance=windows.advance_ms, grace=grace)
        case "sliding":
            kind = SlidingWindows.of(size, grace=grace)
        case "session":
            kind, merger = SessionWindows.of(size, grace=grace), (union,)
    grouped = stream.group_by_key().windowed_by(kind)
    if windows.emission == "close":
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    table = grouped.aggregate(str, union, *merger, name=name, value=str)
    if windows.emission == "suppress":
        table = table.suppress(Suppressed.until_window_closes())
    return table.to_stream(lambda window, _: f"{window.key}@{window.start}/{window.end}", key=str)


def _joined(stream: Any, other: Any, join: Join, name: str) -> Any:
    windows = JoinWindows.of(max(join.before_ms, join.after_ms), grace=join.grace_ms)
    windows = windows.before(join.before_ms).after(join.after_ms)
    method = {"inner": stream.join, "left": stream.left_join, "outer": stream.outer_join}[join.kind]
    return method(other, pair, windows=windows, value=str, name=name)

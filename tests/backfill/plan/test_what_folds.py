"""A step folds unless somebody could see an update before the last: for each rule, an application whose results are
others if the rule is not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, EmitStrategy, Suppressed, TimeWindows
from pystreams.processor import Processor
from pystreams.record import Record
from tests.backfill.kit import Backfill, everything, lines, memory

PAST = {
    "in": [lines([("a", 1, 1), ("b", 2, 2), ("a", 4, 3), ("a", 2, 4), ("a", 30, 45), ("b", 3, 46)])],
    "other": [lines([("a", 7, 2), ("b", 7, 3), ("a", 7, 44)])],
}


def total(one: int, other: int) -> int:
    return one + other


class Looks(Processor[str, int, str, int]):
    """Forwards what another step's store has at this moment."""

    def process(self, record: Record[str, int]) -> None:
        found = self.context.store("s").get(record.key)
        self.context.forward(record.with_value(-1 if found is None else found.value))


class Numbers(Processor[str, int, str, int]):
    """Forwards how many records have come."""

    seen = 0

    def process(self, record: Record[str, int]) -> None:
        self.seen += 1
        self.context.forward(record.with_value(self.seen))


def summed(app: App, **store: Any) -> Any:
    return app.stream("in", key=str, value=int).group_by_key().reduce(total, name="s", **store)


def windowed(app: App) -> Any:
    return app.stream("in", key=str, value=int).group_by_key().windowed_by(TimeWindows.tumbling(10))


def by_key_again(app: App) -> None:
    again = summed(app).to_stream().group_by(lambda value: "all", key=str, value=int)
    again.reduce(total, name="all").to_stream().to("out")


def old_values(app: App) -> None:
    again = summed(app).group_by(lambda key, value: ("all", value), key=str, value=int)
    again.reduce(total, total, name="all").to_stream().to("out")


def joined(app: App) -> None:
    others = app.stream("other", key=str, value=int)
    others.left_join(summed(app), lambda one, other: one + (other or 0), value=int).to("out")


def looked_at(app: App) -> None:
    summed(app)
    app.stream("other", key=str, value=int).process(Looks, stores=["s"], key=str, value=int).to("out")


def processed(app: App) -> None:
    summed(app).to_stream().process(Numbers, key=str, value=int).to("out")


def suppressed(app: App) -> None:
    windowed(app).reduce(total, name="s").suppress(Suppressed.until_time_limit(5)).to_stream().map(
        lambda window, value: (window.key, value), key=str, value=int
    ).to("out")


def on_close(app: App) -> None:
    closing = windowed(app).emit_strategy(EmitStrategy.on_window_close())
    closing.count(name="s").to_stream().map(lambda window, value: (window.key, value), key=str, value=int).to(
        "out"
    )


def chosen_topic(app: App) -> None:
    summed(app).to_stream().to(lambda key, value, context: "out")


SEEN: dict[str, tuple[Callable[[App], Any], dict[str, Any], str]] = {
    "another aggregation": (by_key_again, {}, "sends each update to other steps"),
    "old values": (old_values, {}, "the steps after it see old values"),
    "a join": (joined, {}, "reads its store"),
    "a processor with its store": (looked_at, {}, "reads its store"),
    "a processor after it": (processed, {}, "sees each update"),
    "a suppression": (suppressed, {}, "the steps after it see old values"),
    "windows that are emitted when they close": (on_close, {}, "it emits windows when they close"),
    "topics chosen by record": (chosen_topic, {}, "sends each update to other steps"),
    "no cache": (lambda app: summed(app, cached=False).to_stream().to("out"), {}, "its store has no cache"),
    "no room in the caches": (
        lambda app: summed(app).to_stream().to("out"),
        {"statestore_cache_max_bytes": 0},
        "each update is emitted",
    ),
}


def backfill(name: str, place: Path, updates: dict[str, str] | None = None) -> Any:
    build, settings, _ = SEEN[name]
    app = App("seen", **settings)
    build(app)
    job = Backfill(app, memory(PAST, {"out": 1}), place, commit_records=2)
    if updates is not None:
        job.manifest = replace(job.manifest, updates=updates)
    return job.manifest.updates, everything(job.run())


@pytest.mark.parametrize("name", SEEN)
def test_what_somebody_sees_is_written_and_would_be_missed(name: str, tmp_path: Path) -> None:
    updates, exact = backfill(name, tmp_path / "exact")
    step = next(iter(updates))
    assert updates[step].endswith(SEEN[name][2])
    _, folded = backfill(name, tmp_path / "folded", {step: ""})
    assert folded != exact

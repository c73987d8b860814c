"""Steps of which only the last result can be observed hold their results until the end: stores, offsets, drops and the
last value of each key in each sink are those of a backfill that writes each update."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams import App, TimeWindows, UnlimitedWindows
from pystreams.backfill import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.errors import ConfigError
from tests.backfill.kit import Backfill, everything, last_values, lines, memory, single
from tests.examples import examples


def append(items: list[int], value: int) -> list[int]:
    """Changes its aggregate in place, and forgets it when it is long."""
    items.append(value)
    return items if len(items) < 5 else None  # type: ignore[return-value]


SHARED: list[int] = []

APPS: dict[str, Callable[[Any], Any]] = {
    "count": lambda grouped: grouped.count(name="s"),
    "sum": lambda grouped: grouped.reduce(lambda a, b: a + b, name="s"),
    "last": lambda grouped: grouped.reduce(lambda _, b: b, name="s"),
    "deleting reducer": lambda grouped: grouped.reduce(lambda a, b: None if b % 3 == 0 else a + b, name="s"),
    "with key": lambda grouped: grouped.aggregate(
        lambda: "", lambda k, a, v: f"{a}{k}{v}"[-9:], name="s", value=str
    ),
    "in place": lambda grouped: grouped.aggregate(list, append, name="s", value=list),
    "shared initial value": lambda grouped: grouped.aggregate(lambda: SHARED, append, name="s", value=list),
    "tumbling": lambda grouped: grouped.windowed_by(TimeWindows.tumbling(10, grace=5)).count(name="s"),
    "hopping": lambda grouped: grouped.windowed_by(TimeWindows.hopping(10, advance=4, grace=3)).reduce(
        lambda a, b: (a or 0) + (b or 0), name="s"
    ),
    # Kept longer than any history lasts: whether a window that deletes itself takes the store's time on, and has others
    # expire, depends on the commits, also with each update.
    "in place by window": lambda grouped: grouped.windowed_by(TimeWindows.tumbling(10)).aggregate(
        list, append, name="s", value=list, retention=1_000
    ),
    "since a time": lambda grouped: grouped.windowed_by(UnlimitedWindows(20)).count(name="s"),
}


def application(name: str, bytes_max: int = 1_000_000) -> App:
    app = App("folds", statestore_uncommitted_max_bytes=bytes_max)
    grouped = app.stream("in", key=str, value=int).group_by_key()
    APPS[name](grouped).to_stream().map(lambda key, value: (str(key), str(value)), key=str, value=str).to(
        "out"
    )
    return app


records = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b", "c", "dd"]), st.sampled_from([None, 1, 2, 3, 4]), st.integers(0, 60)
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", APPS)
@given(history=records, held=st.sampled_from([2, 3, 1_000]), rising=st.booleans())
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_each_update(
    name: str, history: list[Any], held: int, rising: bool, tmp_path: Path
) -> None:
    history = sorted(history, key=lambda record: record[2]) if rising else history
    source = memory({"in": [lines(history)]}, {"out": 1})

    def result(*, exact_updates: bool) -> BackfillResult:
        SHARED.clear()
        place = tmp_path / ("exact" if exact_updates else "folded")
        job = Backfill(
            application(name, 330 * held), source, place, commit_records=7, exact_updates=exact_updates
        )
        return job.run(overwrite=True)

    exact, folded = result(exact_updates=True), result(exact_updates=False)
    assert folded.manifest.folded
    was, now = everything(exact), everything(folded)
    assert now["changelogs"] == was["changelogs"]
    assert now["offsets"] == was["offsets"]
    assert now["slices"] == was["slices"]
    assert last_values(now["sinks"]) == last_values(was["sinks"])


def test_what_caches_hold_back_before_it_is_in_the_result(tmp_path: Path) -> None:
    def counted(place: Path, *, exact_updates: bool) -> BackfillResult:
        app = App("folds")
        table = app.stream("in", key=str, value=int).group_by_key().count(name="first")
        again = table.to_stream().group_by_key().windowed_by(TimeWindows.tumbling(10))
        again.count(name="second").to_stream().map(
            lambda window, count: (window.key, count), key=str, value=int
        ).to("out")
        past = memory({"in": [lines([("a", 1, 1), ("b", 2, 2), ("a", 3, 3)])]}, {"out": 1})
        return Backfill(app, past, place, exact_updates=exact_updates).run()

    folded = counted(tmp_path / "folded", exact_updates=False)
    assert folded.manifest.folded
    assert everything(folded) == everything(counted(tmp_path / "exact", exact_updates=True))
    assert len(everything(folded)["changelogs"]["second"][0]) == 2


class Stumbles:
    """A reducer that changes its aggregate before it fails at some values."""

    def __call__(self, items: list[int], value: int) -> list[int]:
        items.append(value)
        if value == 3:
            raise ValueError("three")
        return items


def test_a_slice_whose_functions_fail_is_computed_again_with_each_update(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("folds", processing_exception_handler="continue")
    grouped = app.stream("in", key=str, value=int).group_by_key()
    grouped.aggregate(list, Stumbles(), name="s", value=list).to_stream().to("out")
    source = memory({"in": [lines([("a", 1, 1), ("a", 3, 2), ("b", 3, 3), ("a", 2, 4)])]}, {"out": 1})
    place = tmp_path / "folded"
    exact = Backfill(app, source, tmp_path / "exact", exact_updates=True).run()
    folded = Backfill(app, source, place).run()
    assert everything(folded) == everything(exact)
    assert "slice 0 is computed again, with each update" in caplog.text
    (why,) = folded.manifest.updates.values()
    assert "three" in why
    assert {path.name for path in place.glob("slice-*")} == set(folded.manifest.folders.values())
    assert everything(Backfill(app, source, place).run(resume=True)) == everything(exact)


def test_a_backfill_that_was_begun_without_exact_updates_is_not_resumed_with_them(tmp_path: Path) -> None:
    source, place = memory({"in": [lines([("a", 1, 1)])]}, {"out": 1}), tmp_path / "staging"
    backfill(application("count"), sources=source, staging=place)
    with pytest.raises(ConfigError, match="was begun without exact updates"):
        backfill(application("count"), sources=source, staging=place, resume=True, exact_updates=True)
    backfill(application("count"), sources=source, staging=place, overwrite=True, exact_updates=True)
    backfill(application("count"), sources=source, staging=place, resume=True, exact_updates=True)


@pytest.mark.parametrize(("windows", "grace"), [(False, 0), (True, 1_000)])
def test_large_results_take_as_much_room_as_they_need(windows: bool, grace: int, tmp_path: Path) -> None:
    """Twice in turn, so what has no room until its second record is emitted twice."""
    keys, history = 200, memory({"in": [lines([(str(i % 200), i, i) for i in range(400)])]}, {"out": 1})

    def emitted(place: Path, bytes_max: int) -> int:
        app = App("folds", statestore_uncommitted_max_bytes=bytes_max, statestore_cache_max_bytes=1_000)
        grouped = app.stream("in", key=str, value=int).group_by_key()
        if windows:
            grouped = grouped.windowed_by(TimeWindows.tumbling(1_000, grace=grace))
        table = grouped.aggregate(lambda: "", lambda _, value: "x" * 5_000, name="s", value=str)
        table.to_stream().map(lambda key, value: (str(key), value), key=str, value=str).to("out")
        return len(single(Backfill(app, history, place).run()).sinks["out"])

    assert emitted(tmp_path / "much", 100_000_000) == keys
    assert emitted(tmp_path / "little", 400_000) > 1.8 * keys

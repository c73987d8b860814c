"""Windows that are emitted when they close come once, also when the record that closes them comes after a restart and
is further on than the store's retention."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.dsl.windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows
from tests.live.support import Log, run_to_the_end

START = 10_000_000
#: Past every segment of a store on disk, too.
FAR = START + 50_000_000

PERSISTENT = pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
KEPT = pytest.mark.parametrize("kept", [True, False], ids=["state at hand", "state lost"])


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Log(tmp_path)) as log:
        log.create("in", "out")
        yield log


def closing_windows(log: Log, persistent: bool, cache_bytes: int, windows: dict[str, Any]) -> App:
    app = log.app(
        "closing",
        window_changelog_retention_ms=-1,
        statestore_cache_max_bytes=cache_bytes,
        processing_exception_handler="continue",
    )
    grouped = app.stream("in", key=str, value=int).group_by_key()
    failing = [False, True]

    def add(total: int, value: int) -> int:
        if value < 0 and failing.pop(0):
            raise ValueError(value)
        return total + value

    for name, one in windows.items():
        windowed: Any = grouped.windowed_by(one).emit_strategy(EmitStrategy.on_window_close())
        merging = [add] if isinstance(one, SessionWindows) else []
        sums = windowed.aggregate(int, add, *merging, name=name, persistent=persistent)
        sums.to_stream(lambda window, _, name=name: f"{name} {window}", key=str).to("out")
    return app


@PERSISTENT
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["no cache", "cached"])
@KEPT
def test_windows_of_before_a_stop_come_after_it(
    log: Log, persistent: bool, cache_bytes: int, kept: bool
) -> None:
    windows = {
        "t": TimeWindows.tumbling(1_000, grace=500),
        "h": TimeWindows.hopping(1_000, advance=600),
        "s": SlidingWindows.of(800),
        "e": SessionWindows.of(700, grace=100),
    }
    log.write("in", [("a", 1, START), ("a", 2, START + 500)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, windows))
    assert [key for key, *_ in log.read("out")] == [f"s a@{START - 800}/{START}"]
    if not kept:
        shutil.rmtree(log.path / "state")
    log.write("in", [("b", 4, FAR)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, windows))
    log.write("in", [("b", 8, FAR + 1), ("c", 16, 2 * FAR)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, windows))
    assert {(key, value) for key, value, _ in log.read("out") if " a@" in key} == {
        (f"t a@{START}/{START + 1_000}", 3),
        (f"h a@{START - 400}/{START + 600}", 3),
        (f"h a@{START + 200}/{START + 1_200}", 2),
        (f"s a@{START - 800}/{START}", 1),
        (f"s a@{START - 300}/{START + 500}", 3),
        (f"s a@{START + 1}/{START + 801}", 2),
        (f"e a@{START}/{START + 500}", 3),
    }
    keys = [key for key, *_ in log.read("out")]
    assert f"t b@{FAR}/{FAR + 1_000}" in keys
    assert len(set(keys)) == len(keys)


@PERSISTENT
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["no cache", "cached"])
@KEPT
def test_windows_come_though_the_record_that_closed_them_failed_before_a_stop(
    log: Log, persistent: bool, cache_bytes: int, kept: bool
) -> None:
    """It is in two windows, of which the second failed: nothing of it is kept."""
    windows = {"h": TimeWindows.hopping(1_000, advance=600)}
    log.write("in", [("a", 1, START), ("b", -4, FAR)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, windows))
    assert log.read("out") == []
    if not kept:
        shutil.rmtree(log.path / "state")
    log.write("in", [("c", 1, FAR + 1)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, windows))
    assert [(key, value) for key, value, _ in log.read("out")] == [(f"h a@{START - 400}/{START + 600}", 1)]


@PERSISTENT
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["no cache", "cached"])
@KEPT
def test_a_session_comes_that_the_store_did_not_show_any_more_at_the_stop(
    log: Log, persistent: bool, cache_bytes: int, kept: bool
) -> None:
    """It is as old as the retention by then, and has not closed."""
    sessions = {"e": SessionWindows.of(5)}
    log.write("in", [("a", 1, START), ("a", 2, START + 1), ("b", 4, START + 6)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, sessions))
    assert log.read("out") == []
    if not kept:
        shutil.rmtree(log.path / "state")
    log.write("in", [("b", 8, START + 7)])
    run_to_the_end(log, closing_windows(log, persistent, cache_bytes, sessions))
    assert [(key, value) for key, value, _ in log.read("out")] == [(f"e a@{START}/{START + 1}", 3)]

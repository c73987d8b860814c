"""An application is refused where what it writes would be deleted at once, and only there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import Processor, Record
from pystreams.app import App
from pystreams.dsl.join_windows import JoinWindows
from pystreams.errors import RetentionError
from tests.live.start_checks_kit import counting, refused_with
from tests.live.support import Log, run_to_the_end

DAY_MS = 86_400_000
WEEK = {"retention.ms": str(7 * DAY_MS)}
LONG_AGO_MS = 1_357_000_000_000


def now_ms() -> int:
    return int(time.time() * 1000)


def refused(log: Log, app: App) -> str:
    return refused_with(RetentionError, log, app)


def old_records(log: Log, out_config: dict[str, str]) -> None:
    log.create("in")
    log.create("out", config=out_config)
    log.write("in", [("k", 1, LONG_AGO_MS)])


def test_records_older_than_the_outputs_retention_are_refused(log: Log) -> None:
    old_records(log, {"retention.ms": "604800000"})
    message = refused(log, counting(log))
    assert "out (retention.ms=604800000)" in message
    assert "2013-01-01" in message
    assert "pystreams topics alter out --config retention.ms=-1" in message
    assert "counting-counts-changelog" not in log.admin.describe_topics(), "nothing was created"


def test_the_command_that_the_refusal_names_mends_it(log: Log) -> None:
    old_records(log, {"retention.ms": "604800000"})
    log.admin.alter_topic_config("out", {"retention.ms": "-1"})
    run_to_the_end(log, counting(log))
    assert log.table("out") == {"k": 1}


def test_it_can_be_allowed(log: Log) -> None:
    old_records(log, {"retention.ms": "604800000"})
    run_to_the_end(log, counting(log, allow_expired=True))


@pytest.mark.parametrize("reset", ["latest", "by_duration:PT1H"])
def test_records_that_the_application_begins_behind_do_not_count(log: Log, reset: str) -> None:
    old_records(log, WEEK)
    run_to_the_end(log, counting(log, auto_offset_reset=reset))
    assert log.table("out") == {}


def test_a_sources_own_beginning_counts(log: Log) -> None:
    old_records(log, WEEK)
    app = log.app("copying", auto_offset_reset="latest")
    app.stream("in", key=str, value=int, auto_offset_reset="earliest").to("out")
    assert "2013-01-01" in refused(log, app)


def test_young_records_and_topics_without_limit_pass(log: Log) -> None:
    log.create("in")
    log.create("out", config=WEEK)
    log.write("in", [("k", 1, now_ms())])
    run_to_the_end(log, counting(log))


def test_window_changelogs_count_and_a_setting_mends_them(log: Log) -> None:
    from pystreams.dsl.windows import TimeWindows

    old_records(log, {"retention.ms": "-1"})

    def windowed(**settings: object) -> App:
        app = log.app("windowed", **settings)
        grouped = app.stream("in", key=str, value=int).group_by_key()
        grouped.windowed_by(TimeWindows.tumbling(1000)).count(name="w").to_stream(
            lambda window, value: window.key
        ).to("out", key=str)
        return app

    message = refused(log, windowed())
    assert "windowed-w-changelog (retention.ms=86401000)" in message
    assert "window_changelog_retention_ms=-1" in message
    run_to_the_end(log, windowed(window_changelog_retention_ms=-1))
    assert log.table("out") == {"k": 1}


# What the times of results come from


def plus(left: int | None, right: int | None) -> int:
    return (left or 0) + (right or 0)


class Passing(Processor[str, int, str, int]):
    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record)


def stream_with_table(app: App) -> None:
    app.stream("left", key=str, value=int).join(app.table("right", key=str, value=int), plus, value=int).to(
        "out"
    )


def stream_with_global_table(app: App) -> None:
    table = app.global_table("right", key=str, value=int)
    app.stream("left", key=str, value=int).join(table, plus, key_fn=lambda key, _value: key, value=int).to(
        "out"
    )


def tables(app: App) -> None:
    left, right = app.table("left", key=str, value=int), app.table("right", key=str, value=int)
    left.join(right, plus, value=int).to_stream().to("out")


def left_tables(app: App) -> None:
    left, right = app.table("left", key=str, value=int), app.table("right", key=str, value=int)
    left.left_join(right, plus, value=int).to_stream().to("out")


def outer_tables(app: App) -> None:
    left, right = app.table("left", key=str, value=int), app.table("right", key=str, value=int)
    left.outer_join(right, plus, value=int).to_stream().to("out")


def tables_by_foreign_key(app: App) -> None:
    left, right = app.table("left", key=str, value=int), app.table("right", key=str, value=int)
    left.join(right, plus, foreign_key=str, value=int).to_stream().to("out")


def streams(app: App) -> None:
    left, right = app.stream("left", key=str, value=int), app.stream("right", key=str, value=int)
    left.join(right, plus, windows=JoinWindows.of(1000), value=int).to("out")


def left_streams(app: App) -> None:
    left, right = app.stream("left", key=str, value=int), app.stream("right", key=str, value=int)
    left.left_join(right, plus, windows=JoinWindows.of(1000), value=int).to("out")


def merged(app: App) -> None:
    app.stream("left", key=str, value=int).merge(app.stream("right", key=str, value=int)).to("out")


def counted_by_value(app: App) -> None:
    """Through a repartition topic."""
    left = app.stream("left", key=str, value=int).merge(app.stream("right", key=str, value=int))
    left.group_by(str, key=str, repartition="again").count().to_stream().to("out")


def processed(app: App) -> None:
    left = app.stream("left", key=str, value=int).merge(app.stream("right", key=str, value=int))
    left.process(Passing, key=str, value=int).to("out")


def each_on_its_own(app: App) -> None:
    """What is old goes where everything is kept."""
    app.stream("left", key=str, value=int).to("out")
    app.stream("right", key=str, value=int).to("kept")


YES, MAYBE, NO = "refused", "warned of", "started"


@pytest.mark.parametrize(
    "program,left,right,both",
    [
        (stream_with_table, YES, NO, YES),
        (stream_with_global_table, YES, NO, YES),
        (tables, MAYBE, MAYBE, YES),
        (left_tables, YES, NO, YES),
        (outer_tables, YES, YES, YES),
        (tables_by_foreign_key, MAYBE, MAYBE, YES),
        (streams, MAYBE, MAYBE, YES),
        (left_streams, YES, NO, YES),
        (merged, YES, YES, YES),
        (counted_by_value, YES, YES, YES),
        (processed, MAYBE, MAYBE, MAYBE),
        (each_on_its_own, YES, NO, YES),
    ],
)
@pytest.mark.parametrize("old", ["left", "right", "both", "neither"])
def test_the_inputs_count_whose_times_the_results_have(
    log: Log,
    caplog: pytest.LogCaptureFixture,
    program: Callable[[App], Any],
    old: str,
    left: str,
    right: str,
    both: str,
) -> None:
    log.create("left", "right", "kept")
    log.create("out", config=WEEK)
    for side in ("left", "right"):
        log.write(side, [("k", 1, LONG_AGO_MS if old in (side, "both") else now_ms())])
    # Of the windows' changelogs other tests speak.
    app = log.app("joined", window_changelog_retention_ms=-1)
    program(app)
    outcome = {"left": left, "right": right, "both": both, "neither": NO}[old]
    caplog.set_level(logging.WARNING, "pystreams.runtime.startup.retention_check")
    if outcome == YES:
        message = refused(log, app)
        assert "out (retention.ms=604800000)" in message
        named = ("left-0", "right-0") if old == "both" else (f"{old}-0",)
        assert any(f"the oldest record of {partition} is from 2013-01-01" in message for partition in named)
        return
    run_to_the_end(log, app)
    warnings = [
        record.getMessage() for record in caplog.records if "deleted right after" in record.getMessage()
    ]
    assert bool(warnings) == (outcome == MAYBE)
    for warning in warnings:
        assert "may be deleted right after they are written" in warning
        assert "out (retention.ms=604800000)" in warning


def test_a_windows_changelog_counts_for_the_side_that_is_kept_in_it(log: Log) -> None:
    log.create("left", "right", "out")
    log.write("left", [("k", 1, now_ms())])
    log.write("right", [("k", 1, LONG_AGO_MS)])
    app = log.app("windows")
    left, right = app.stream("left", key=str, value=int), app.stream("right", key=str, value=int)
    left.join(right, plus, windows=JoinWindows.of(1000), value=int, name="met").to("out")
    message = refused(log, app)
    assert "windows-met-other-join-store-changelog" in message
    assert "windows-met-this-join-store-changelog" not in message


def test_dead_letters_that_would_be_deleted_are_warned_of(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.create("in", "out")
    log.create("dead", config=WEEK)
    log.write("in", [("k", 1, LONG_AGO_MS)])
    app = log.app("copy", errors_dead_letter_queue_topic_name="dead")
    app.stream("in", key=str, value=int).to("out")
    run_to_the_end(log, app)
    assert (
        "may be deleted right after they are written\n  where: dead (retention.ms=604800000)" in caplog.text
    )


@pytest.mark.parametrize("timestamp", [1_700_000_000, 1_357_000_000])
def test_seconds_are_distinguished_from_milliseconds(log: Log, timestamp: int) -> None:
    log.create("in")
    log.create("out", config=WEEK)
    log.write("in", [("k", 1, timestamp)])
    message = refused(log, counting(log))
    assert (
        f"timestamp {timestamp}: most likely seconds: multiply by 1000; timestamps are milliseconds since 1970"
        in message
    )
    assert "write timestamps in milliseconds" in message


@pytest.mark.parametrize(
    ("timestamp", "unit"),
    [
        (1_700_000_000_000_000, "microseconds: divide by 1000"),
        (1_700_000_000_000_000_000, "nanoseconds: divide by 1,000,000"),
    ],
)
def test_microseconds_are_distinguished_from_milliseconds(
    log: Log, timestamp: int, unit: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in")
    log.create("out", config=WEEK)
    log.write("in", [("k", 1, timestamp)])
    run_to_the_end(log, counting(log))
    assert f"timestamp {timestamp}: most likely {unit};" in caplog.text

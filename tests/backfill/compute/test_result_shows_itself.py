"""Plans, results and hand-overs of backfills show what there is to know: as text, and in a notebook as tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pystreams import App, TimeWindows
from pystreams.backfill.api import plan_backfill
from pystreams.backfill.compute.driver import Progress
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource
from tests.backfill.kit import Backfill, History, lines, memory
from tests.backfill.live import SETTINGS, append, create
from tests.backfill.programs import history, word_count
from tests.live.support import Log

#: A window of 10 with a grace of 5 drops two records. Two partitions.
PAST: History = {
    "in": [
        lines([("a", 1, 3), ("a", 2, 40), ("b", 3, 31), ("b", 4, 7), ("a", 5, 22)]),
        lines([("c", 1, 3)]),
    ],
    "accounts": [lines([]), lines([])],
}


def windowed() -> App:
    app = App("shown")
    readings = app.stream("in", key=str, value=int)
    windows = TimeWindows.tumbling(10, grace=5)
    readings.group_by_key().windowed_by(windows).count(name="counts", step="count")
    readings.to("copies")
    return app


def test_the_text_has_stores_topics_and_what_was_left_out(tmp_path: Path) -> None:
    result = Backfill(windowed(), memory(PAST), tmp_path / "staging").run()
    late = (
        "too late for step count (store counts): 2 of 5 records (40 %), up to 33 ms late; a grace of at least 31 ms "
        "would have kept them"
    )
    assert repr(result).splitlines() == [
        "Backfill of shown, up to 2023-11-14T22:13:20Z",
        "  store  counts  3 entries, windows from 1970-01-01T00:00:00.026Z on",
        "  topic  copies  6 records",
        (
            "A store has only the windows that have not expired (size and grace, or retention=): a longer retention= "
            "keeps earlier ones, and emitted(TOPIC) has the results of all."
        ),
        f"Left out: 2 dropped; {late}.",
    ]


def test_a_store_that_still_has_all_windows_does_not_say_from_when_on(tmp_path: Path) -> None:
    app = App("kept")
    windows = TimeWindows.tumbling(10, grace=5)
    readings = app.stream("in", key=str, value=int).group_by_key().windowed_by(windows)
    readings.count(name="counts", retention=1_000)
    text = repr(Backfill(app, memory(PAST), tmp_path / "staging").run())
    assert "windows from" not in text
    assert "retention" not in text


def test_it_says_why_records_were_dropped(tmp_path: Path) -> None:
    app = App("keyless")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    past = {**PAST, "in": [lines([(None, n, n) for n in range(2_000)]), lines([("c", 1, 3)])]}
    shown = repr(Backfill(app, memory(past), tmp_path / "staging").run())
    assert "Left out: 2,000 dropped (null key or value)." in shown.splitlines()


def test_several_causes_are_counted(tmp_path: Path) -> None:
    readings = windowed()
    accounts = readings.table("accounts", key=str, value=int)
    accounts.to_stream().to("changes")
    nothing = [(None, n, 30) for n in range(3)]
    past = {**PAST, "in": [*PAST["in"][:1], lines(nothing)], "accounts": [lines(nothing), lines([])]}
    shown = repr(Backfill(readings, memory(past), tmp_path / "staging").run())
    assert "Left out: 8 dropped (6 null key); too late for step count" in shown


def test_progress_is_a_short_line() -> None:
    assert (
        repr(Progress(0, 2, 1_500, 4_000, finished=False)) == "Slice 1, task 2: 1,500 of about 4,000 records"
    )
    done = Progress(0, 2, 4_000, 4_000, finished=True)
    assert done._repr_html_() == "<p>Slice 1, task 2: 4,000 of 4,000 records, finished</p>"


def test_a_notebook_shows_a_table(tmp_path: Path) -> None:
    html = Backfill(windowed(), memory(PAST), tmp_path / "staging").run()._repr_html_()
    assert html.startswith("<p>Backfill of shown, up to 2023-11-14T22:13:20Z</p><table><tr>")
    assert ">6 records</td>" in html
    assert "<p>Left out: 2 dropped; " in html


def test_a_join_in_which_no_record_finds_anything_is_named(tmp_path: Path) -> None:
    app = App("in-vain")
    accounts = app.table("accounts", key=str, value=int)
    app.stream("in", key=str, value=int).join(accounts, lambda one, other: one + other, value=int).to(
        "joined"
    )
    past = {**PAST, "in": [lines([("a", n, n) for n in range(200)]), lines([])]}
    result = Backfill(app, memory(past), tmp_path / "staging").run()
    assert "none of 200 records found a row in table accounts" in repr(result)
    # The name of a lambda is not taken for a tag.
    assert "&lt;lambda&gt;" in result._repr_html_()


def test_a_plan_shows_its_slices_and_what_they_read() -> None:
    app = App("planned")
    readings = app.stream("in", key=str, value=int)
    readings.group_by(lambda key, value: value, key=int).count(name="counts")
    planned = plan_backfill(app, sources=memory(PAST))
    title, *rows = repr(planned).splitlines()
    assert title.startswith("Plan of a backfill of planned, up to 20")
    assert rows == [
        "  slice  planned-counts-repartition, slice 1 of 2  reads 6 records of in",
        "  slice  counts, slice 2 of 2                      reads planned-counts-repartition",
    ]
    assert ">reads 6 records of in</td>" in planned._repr_html_()


@pytest.mark.live
def test_a_hand_over_shows_what_it_has_written_and_a_second_one_that_it_has_not(
    new_log: Callable[[str], Log],
) -> None:
    log = new_log("log")
    past = history("word count", 1, 1)
    create(log, past, ["word-counts"])
    append(log, past)
    source = EmbeddedSource(str(log.path / "log.db"))
    result = Backfill(word_count(**SETTINGS), source, log.path / "staging").run()
    first, second = (repr(hand_over(result, log.broker, emit=True)).splitlines() for _ in range(2))
    entries = sum(len(of_task) for of_task in result.changelog("counts").values())
    assert first == [
        "Handed over: wc continues at 2023-11-14T22:13:20Z",
        f"  store  counts       {entries} written, 0 unchanged, 0 deleted",
        f"  topic  word-counts  {sum(result.written().values())} records",
    ]
    assert second[0] == "Handed over before, so nothing was changed: wc continues at 2023-11-14T22:13:20Z"

"""Before a backfill computes anything, it warns of topics that would delete its results."""

from __future__ import annotations

import json

import pytest

from tests.cli.backfill.backfill_kit import HERE

#: 2013-01-01 and 2013-12-31 UTC.
_FIRST_MS, _LAST_MS = 1_356_998_400_000, 1_388_448_000_000

PROGRAM = """
from datetime import timedelta
from pystreams import App, TimeWindows
from pystreams.timestamps import ConsumedRecord


def later(record: ConsumedRecord) -> int:
    return record.timestamp + 100 * 365 * 86_400_000


app = App("readings")
readings = app.stream("readings", key=str, value=int{options})
readings.group_by_key().windowed_by(TimeWindows.tumbling(timedelta(hours=1))).count(name="hourly")
readings{step}.to("copies")
"""


@pytest.fixture
def readings(folder, pystreams):
    """Writes the program, and a year of history whose results a topic and a changelog would delete."""

    def write(name: str, options: str = "", step: str = "") -> str:
        (folder / f"{name}.py").write_text(PROGRAM.format(options=options, step=step), encoding="utf-8")
        return name

    assert pystreams("topics", "create", "readings").code == 0
    assert pystreams("topics", "create", "copies", "-c", "retention.ms=604800000").code == 0
    history = [{"key": "a", "value": 1, "timestamp": ms} for ms in (_FIRST_MS, _LAST_MS)]
    lines = "".join(json.dumps(record) + "\n" for record in history)
    produced = pystreams("produce", "readings", "--json", "--value-type", "int", stdin=lines)
    assert produced.code == 0, produced.err
    return write


EMIT_AND_HAND_OVER = ("--hand-over", "embedded", "--emit", "topic")


def test_a_dry_run_names_the_topics_and_what_to_do(pystreams, readings):
    program = readings("warned")
    shown = pystreams("backfill", program, *EMIT_AND_HAND_OVER, "--dry-run", *HERE)
    assert shown.code == 0, shown.err
    assert "readings-hourly-changelog: retention.ms=90000000, last record 2013-12-31T00:00:00Z" in shown.err
    assert "copies: retention.ms=604800000, last record 2013-12-31T00:00:00Z" in shown.err
    assert "pystreams topics alter copies --config retention.ms=-1" in shown.err
    assert "set -s window_changelog_retention_ms=-1" in shown.err


def test_the_warning_comes_before_the_first_slice_and_the_refusal_after_the_last(pystreams, readings):
    refused = pystreams("backfill", readings("refused"), *EMIT_AND_HAND_OVER, *HERE)
    assert refused.code != 0
    warned = refused.err.index("its results will be refused once they are computed")
    assert warned < refused.err.index("slice 1 of 1")
    assert "topics would delete what the backfill writes right after it is written" in refused.err[warned:]
    # What it advises is enough, and nothing is computed again.
    assert pystreams("topics", "alter", "copies", "-c", "retention.ms=-1").code == 0
    mended = ("-s", "window_changelog_retention_ms=-1", "--resume")
    done = pystreams("backfill", "refused", *EMIT_AND_HAND_OVER, *mended, *HERE)
    assert done.code == 0, done.err
    assert "would delete" not in done.err
    assert len(pystreams("consume", "copies").lines) == 2


@pytest.mark.parametrize(
    ("name", "options", "step", "settings"),
    [
        ("extracted", ", timestamp_extractor=later", "", ()),
        ("allowed", "", "", ("-s", "allow_expired=true")),
    ],
    ids=["times of an extractor", "allowed"],
)
def test_nothing_is_said_if_the_results_are_young_or_may_be_deleted(
    pystreams, readings, name, options, step, settings
):
    program = readings(name, options, step)
    shown = pystreams("backfill", program, *EMIT_AND_HAND_OVER, "--dry-run", *settings, *HERE)
    assert shown.code == 0, shown.err
    assert "would delete" not in shown.err


def test_nothing_is_said_of_times_that_a_step_of_the_user_decides(pystreams, readings):
    program = readings("stamped", step=".process(lambda: None, key=str, value=int)")
    shown = pystreams("backfill", program, *EMIT_AND_HAND_OVER, "--dry-run", *HERE)
    assert "readings-hourly-changelog: retention.ms=" in shown.err
    assert "copies: retention.ms=" not in shown.err

"""What ``run`` says: little while all is well, and at the end what became of every record that was left out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Command, Outcome

HALVES = """
from pystreams import App
app = App(
    "halves",
    errors_dead_letter_queue_topic_name="dead",
    processing_exception_handler="{handler}",
    deserialization_exception_handler="continue",
)
def share(value: int) -> int:
    return 10 // value
numbers = app.stream("in", key=str, value=int)
numbers.map_values(share).to("out", key=str, value=int)
numbers.group_by_key().count(name="counts")
"""

#: One task reads a topic of the user's and one of its own.
JOINED = """
from pystreams import App

app = App("priced")
countries = app.table("countries", key=str, value=str)
sales = app.stream("sales", key=str, value=str)
by_customer = sales.select_key(lambda number, customer: customer, key=str)
by_customer.join(countries, lambda customer, country: country, value=str).to("out")
"""

Run = Callable[..., Outcome]


@pytest.fixture
def halves(folder, pystreams: Command, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program on ``stdin``: lines of text, as keys and values where they hold ``=``."""
    pystreams("topics", "create", "in", "out", "dead")

    def run(*options: str, stdin: str, handler: str = "dead_letter") -> Outcome:
        (folder / f"halves_{handler}.py").write_text(HALVES.format(handler=handler), encoding="utf-8")
        # The one of an earlier test has another file, which may be gone.
        monkeypatch.delitem(sys.modules, f"halves_{handler}", raising=False)
        pystreams("produce", "in", "--key-separator", "=", "--value-type", "int", stdin=stdin)
        return pystreams("run", f"halves_{handler}", "--until-caught-up", *options)

    return run


GOOD = "a=1\nb=2\n"
#: Three that cannot be divided by.
BAD = "a=1\nb=0\nc=0\nd=0\n"


def test_the_last_line_says_how_many_dead_letters_there_are_and_where(halves: Run):
    ran = halves(stdin=BAD)
    assert ran.code == 0
    last = ran.err.splitlines()[-1]
    assert re.fullmatch(
        r"Stopped, and all is committed: 4 records in [\d.]+ s; left out: 3 moved to the dead-letter topic dead\.",
        last,
    )


def test_dead_letters_are_reported_once_and_then_counted(halves: Run):
    told = halves(stdin="".join(f"k{n}=0\n" for n in range(500))).err.splitlines()
    # A line of the progress may show how many there were by then.
    about = [line for line in told if "dead-letter topic" in line and " lag " not in line]
    assert len(about) == 3
    assert "in-0 offset 0" in about[0]
    assert "ZeroDivisionError" in about[0]
    assert "500 records so far were moved to the dead-letter topic dead" in about[1]


def test_skipped_and_dropped_records_are_in_the_last_line_too(halves: Run, pystreams: Command):
    pystreams("produce", "in", stdin="no number\n")
    ran = halves(stdin=BAD, handler="continue")
    assert "left out: 4 skipped." in ran.err.splitlines()[-1]
    pystreams("produce", "in", "--value-type", "int", stdin="1\n")
    assert "left out: 1 dropped." in halves(stdin=GOOD).err.splitlines()[-1]


def test_the_faulty_field_of_a_skipped_record_is_named(folder, pystreams: Command):
    (folder / "orders.py").write_text(
        "from dataclasses import dataclass\n"
        "from pystreams import App\n"
        "@dataclass\n"
        "class Order:\n"
        "    amount: int\n"
        "app = App('orders', deserialization_exception_handler='continue')\n"
        "app.stream('in', key=str, value=Order).map_values(lambda order: order.amount, value=int).to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin='{"amount": "many"}\n')
    ran = pystreams("run", "orders", "--until-caught-up")
    assert "Expected `int`, got `str` - at `$.amount`; more of this kind are counted" in ran.err


LATE = """
from pystreams import App, TimeWindows
app = App("late", window_changelog_retention_ms=-1)
windows = TimeWindows.tumbling(60_000, grace={grace})
app.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(name="counts", step="count")
"""


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_the_last_line_says_how_late_records_were_and_the_grace_that_keeps_them(
    folder, pystreams: Command, workers: tuple[str, ...]
):
    pystreams("topics", "create", "in", "--config", "retention.ms=-1")
    for second in ("00:00", "01:59", "00:20", "00:30"):
        pystreams("produce", "in", "-k", "=", "--timestamp", f"2026-03-01T12:{second}Z", stdin="a=x\n")
    for name, grace in (("hasty", 0), ("patient", 59_001)):
        (folder / f"{name}.py").write_text(LATE.format(grace=grace), encoding="utf-8")
    ran = pystreams("run", "hasty", "--until-caught-up", *workers)
    assert ran.err.splitlines()[-1].endswith(
        "; left out: 2 dropped; too late for step count (store counts): 2 of 4 records (50 %), up to 1 min 39 s late; "
        "a grace of at least 59.001 s would have kept them."
    )
    ran = pystreams("run", "patient", "--until-caught-up", "--application-id", "patient", *workers)
    assert "left out" not in ran.err


PAIRS = """
from pystreams import App, JoinWindows
app = App("pairs", window_changelog_retention_ms=-1)
left, right = (app.stream(topic, key=str, value=str) for topic in ("left", "right"))
left.join(right, lambda a, b: a + b, windows=JoinWindows.of(60_000, grace={grace}), step="pair").to("out", value=str)
"""


def test_the_last_line_says_that_records_came_too_late_for_those_of_the_other_stream(
    folder, pystreams: Command
):
    pystreams("topics", "create", "left", "right", "out", "--config", "retention.ms=-1")
    for name, grace in (("forgets", 0), ("keeps", 117_001)):
        (folder / f"{name}.py").write_text(PAIRS.format(grace=grace), encoding="utf-8")
    runs = [("run", name, "--until-caught-up", "--application-id", name) for name in ("forgets", "keeps")]

    def run_with(topic: str, *times: str) -> list[str]:
        for time in times:
            pystreams("produce", topic, "-k", "=", "--timestamp", f"2026-03-01T{time}Z", stdin="a=x\n")
        return [pystreams(*run).err.splitlines()[-1] for run in runs]

    run_with("left", "12:00:00", "12:00:02")
    run_with("right", "12:00:01", "12:03:00")
    forgets, keeps = run_with("left", "12:00:03")
    assert forgets.endswith(
        "; too late for step pair-this-join: 1 of 1 records (100 %), 2 min 57 s late; a grace of at least 1 min 58 s "
        "would have kept it."
    )
    assert "too late" not in keeps
    described = pystreams("describe", "forgets", "--late", "--application-id", "forgets").out
    assert re.search(r"^pair-this-join\t.*\t1\t2 min 57 s\t1 min 58 s$", described, re.MULTILINE), described


def test_a_run_that_leaves_nothing_out_says_nothing_of_it(halves: Run):
    assert "left out" not in halves(stdin=GOOD).err


def test_a_failure_says_what_it_stopped(halves: Run, pystreams: Command):
    pystreams("produce", "in", stdin="no number\n")
    # Without a commit in between, after which the skipped record would be counted as left out.
    failed = halves("-s", "commit_interval_ms=3600000", stdin=BAD, handler="fail")
    assert failed.code == 1
    assert re.search(r"Stopped by a failure: 2 records in [\d.]+ s\.", failed.err)
    assert "a record was skipped: " in failed.err
    assert "ZeroDivisionError" in failed.err


def test_what_has_not_begun_is_not_said_to_have_stopped(halves: Run, pystreams: Command):
    halves(stdin=GOOD)
    pystreams("topics", "delete", "out", "--yes")
    missing = pystreams("run", "halves_dead_letter", "--until-caught-up")
    assert missing.code == 4
    assert "Stopped" not in missing.err


def test_a_quiet_run_that_goes_well_says_nothing(halves: Run):
    ran = halves("--quiet", stdin=GOOD)
    assert (ran.code, ran.err) == (0, "")


def test_a_quiet_run_says_what_it_left_out(halves: Run):
    assert "left out: 3 moved to the dead-letter topic dead" in halves("-q", stdin=BAD).err.splitlines()[-1]


def test_a_quiet_run_that_fails_says_why(halves: Run):
    failed = halves("-q", stdin=BAD, handler="fail")
    assert failed.code == 1
    assert "ZeroDivisionError" in failed.err


def test_log_lines_have_date_level_and_logger(halves: Run):
    assert re.search(
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d WARNING"
        r" pystreams\.engine\.failures\.left_out: a record was",
        halves(stdin=BAD).err,
        re.MULTILINE,
    )


def test_for_programs_every_line_is_an_object(halves: Run):
    told = [json.loads(line) for line in halves("--log-format", "json", stdin=BAD).err.splitlines()]
    assert all(one.keys() >= {"time", "level", "logger", "message"} for one in told)
    last = told[-1]
    assert [(one["level"], one["task"]) for one in told if "task" in one] == [("WARNING", "0_0")]
    assert (last["records"], last["left_out"]) == (4, {"moved to the dead-letter topic dead": 3})


def test_records_that_the_application_has_written_itself_are_named_apart(folder, pystreams: Command):
    pystreams("topics", "create", "sales", "countries", "out")
    (folder / "priced.py").write_text(JOINED, encoding="utf-8")
    for topic, lines in (("countries", "ann=ES\nben=PT\ncleo=ES\n"), ("sales", "1=ann\n2=ben\n")):
        assert pystreams("produce", topic, "--key-separator", "=", stdin=lines).code == 0
    ran = pystreams("run", "priced", "--until-caught-up", "--log-format", "json")
    last = json.loads(ran.err.splitlines()[-1])
    assert (last["records"], last["internal_records"]) == (5, 2)
    assert "all is committed: 5 records, and 2 from internal topics, in " in last["message"]


def test_for_programs_an_error_is_an_object_with_its_parts(halves: Run, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_LOG_FORMAT", "json")
    told = [json.loads(line) for line in halves(stdin=BAD, handler="fail").err.splitlines()]
    error = told[-1]
    assert error["level"] == "ERROR"
    assert "ZeroDivisionError" in error["message"]
    assert "in-0 offset 1" in error["where"]
    assert "return 10 // value" in error["line"]


def test_for_programs_a_traceback_is_a_part_of_its_line(halves: Run):
    told = [
        json.loads(line)
        for line in halves("-v", "--log-format=json", stdin=BAD, handler="fail").err.splitlines()
    ]
    assert any("Traceback" in one.get("exception", "") for one in told)


@pytest.mark.parametrize("options", [(), ("--log-format", "json")], ids=["text", "json"])
def test_workers_say_together_what_they_left_out(folder, halves: Run, pystreams: Command, capfd, options):
    pystreams("topics", "create", "wide", "--partitions", "3")
    program = HALVES.format(handler="dead_letter").replace('"in"', '"wide"').replace("halves", "wide")
    (folder / "wide.py").write_text(program, encoding="utf-8")
    lines = "".join(f"k{n}={n % 2}\n" for n in range(40))
    pystreams("produce", "wide", "--key-separator", "=", "--value-type", "int", stdin=lines)
    ran = pystreams("run", "wide", "--until-caught-up", "--workers", "2", *options)
    assert ran.code == 0
    told = ran.err.splitlines()
    assert "2 workers, 0 restarts; left out: 20 moved to the dead-letter topic dead." in told[-1]
    if options:
        objects = [json.loads(line) for line in told]
        assert {one["worker"] for one in objects if "worker" in one} <= {1, 2}
        assert objects[-1]["left_out"] == {"moved to the dead-letter topic dead": 20}

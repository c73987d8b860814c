"""Progress is a bar for people and lines for files, and its numbers are right."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from pystreams.cli.terminal import progress
from pystreams.cli.terminal.logs import LogFormat, LogOptions, log_to_stderr, take_down_logs
from pystreams.cli.terminal.progress import BarDisplay, LineDisplay, NoDisplay, Standbys, display_for
from pystreams.clock import ManualClock
from pystreams.meter import Meter


def test_the_rate_is_that_of_the_last_seconds():
    clock = ManualClock()
    meter = Meter(clock)
    for processed in (1_000, 2_000, 3_000, 4_000):
        clock.advance_ms(1_000)
        meter.update(processed)
    assert meter.rate() == 1_000
    for _ in range(10):
        clock.advance_ms(1_000)
        meter.update(4_000)
    assert meter.rate() == 0
    assert meter.elapsed_s() == 14


def test_the_rate_is_0_before_any_time_has_passed():
    meter = Meter(ManualClock())
    meter.update(5)
    assert meter.rate() == 0


@pytest.fixture(autouse=True)
def logs():
    log_to_stderr(LogOptions())
    yield
    take_down_logs()


def lines(capsys) -> list[tuple[str, ...]]:
    """State, records, rate and lag of each line since the last look."""
    words = [line.split() for line in capsys.readouterr().err.splitlines()]
    return [(of[0], of[1], of[3], of[5]) for of in words]


def test_a_line_comes_when_work_begins_and_every_30_s(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        display.update("restoring", 0, None)
        display.update("restoring", 0, None)
        display.update("running", 10, 90)
        assert lines(capsys) == [("restoring", "0", "0/s", "?"), ("running", "10", "0/s", "90")]
        for second in range(1, 61):
            clock.advance_ms(1_000)
            display.update("running", 10 + 30 * second, 0)
        assert lines(capsys) == [("running", "910", "30/s", "0"), ("running", "1,810", "30/s", "0")]


def test_nothing_is_said_while_nothing_changes_and_the_next_change_is_reported_at_once(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        display.update("running", 10, 0)
        for _ in range(1_000):
            clock.advance_ms(1_000)
            display.update("running", 10, 0)
        assert lines(capsys) == [("running", "10", "0/s", "0")]
        display.update("running", 11, 0)
        assert [line[:2] for line in lines(capsys)] == [("running", "11")]


def test_a_state_that_comes_and_goes_makes_no_lines(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        for state in ("rebalancing", "running", "1/2 running", "running", "stopping", "pending error"):
            display.update(state, 0, 7)
        assert [line[0] for line in lines(capsys)] == ["running"]


def test_the_first_line_knows_how_much_there_is_to_do(capsys):
    with LineDisplay(ManualClock()) as display:
        display.update("running", 0, None)
        display.update("running", 0, 2_000)
        assert lines(capsys) == [("running", "0", "0/s", "2,000")]


def test_what_was_left_out_is_reported_while_it_runs(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        display.update("running", 10, 5)
        assert "left out" not in capsys.readouterr().err
        clock.advance_ms(30_000)
        display.update("running", 10, 5, {"skipped": 2, "dropped": 1_000})
        assert capsys.readouterr().err.endswith("lag         5  left out: 2 skipped, 1,000 dropped\n")


def test_records_from_internal_topics_are_named_apart(capsys):
    with LineDisplay(ManualClock()) as display:
        display.update("running", 10, 5, internal=1_000)
    assert capsys.readouterr().err.endswith(
        "10 records          0/s  lag         5  and 1,000 from internal topics\n"
    )


def test_standbys_and_what_they_lack_are_reported(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        for standbys in (Standbys(1, None), Standbys(2, 1_500)):
            display.update("running", 10, 5, {"skipped": 2}, standbys)
            clock.advance_ms(30_000)
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("lag         5  1 standby, lag ?  left out: 2 skipped")
    assert second.endswith("lag         5  2 standbys, lag 1,500  left out: 2 skipped")


def test_a_start_that_lasts_is_reported(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        for _ in range(31):
            display.update("rebalancing", 0, None)
            clock.advance_ms(1_000)
    assert [line[0] for line in lines(capsys)] == ["rebalancing"]


def test_lines_for_programs_have_the_figures(capsys):
    log_to_stderr(LogOptions(format=LogFormat.JSON))
    with LineDisplay(ManualClock()) as display:
        display.update("running", 1_234, 0, {"dropped": 3}, Standbys(2, None), 56)
    told = json.loads(capsys.readouterr().err)
    assert (told["level"], told["state"], told["records"], told["lag"]) == ("INFO", "running", 1_234, 0)
    assert told["internal_records"] == 56
    assert told["left_out"] == {"dropped": 3}
    assert (told["standbys"], told["standby_lag"]) == (2, None)


#: Controls of a terminal. The group has those that move the cursor to another line (down, up) or erase its line.
CONTROL = re.compile(r"(\n|\x1b\[1A|\x1b\[2K)|\x1b\[[?\d;]*[A-Za-z]|\r")


def screen_after(output: str) -> list[str]:
    """The lines of a terminal that has received this output. A line is painted again only after it was erased."""
    lines, row, start = [""], 0, 0
    for control in CONTROL.finditer(output):
        lines[row] += output[start : control.start()]
        start = control.end()
        if control[1] == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif control[1] == "\x1b[1A":
            row -= 1
        elif control[1] == "\x1b[2K":
            lines[row] = ""
    lines[row] += output[start:]
    return lines


@pytest.mark.parametrize(("lag", "share", "waiting"), [(None, 0, "?"), (0, 100, "0"), (50, 50, "50")])
def test_a_bar_is_painted_and_taken_down(lag, share, waiting, monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=terminal, force_terminal=True, color_system=None, width=100)
    monkeypatch.setattr(progress, "messages", lambda: console)
    with BarDisplay(Meter(ManualClock())) as display:
        display.update("running", 50, lag)
    painted = CONTROL.sub("\n", terminal.getvalue()).splitlines()
    bar = [line for line in painted if "running" in line][-1]
    assert bar.split()[-7:] == [str(share), "%", "50", "records", "0/s", "lag", waiting]
    assert "".join(screen_after(terminal.getvalue())).strip() == ""


@pytest.mark.parametrize(
    "options,kind",
    [
        (LogOptions(), LineDisplay),
        (LogOptions(format=LogFormat.JSON), LineDisplay),
        (LogOptions(quiet=True), NoDisplay),
    ],
)
def test_a_file_gets_lines_or_nothing(options, kind):
    clock = ManualClock()
    assert isinstance(display_for(options, Meter(clock), clock), kind)

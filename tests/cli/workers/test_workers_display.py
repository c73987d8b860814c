"""The workers' table shows each of them and all together."""

from __future__ import annotations

import io

from rich.console import Console

from pystreams.cli.commands.workers.display import WorkersLines, WorkersTable, workers_display_for
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr, take_down_logs
from pystreams.clock import ManualClock
from pystreams.meter import Meter
from pystreams.runtime.supervisor.supervision import Report, Supervision


def scene() -> tuple[ManualClock, Supervision]:
    clock = ManualClock()
    supervision = Supervision(2, clock)
    supervision.begin()
    return clock, supervision


def rows(table: WorkersTable, supervision: Supervision, pids: dict[int, int]) -> dict[str, list[str]]:
    """Cells by the row's first, as painted."""
    console = Console(file=io.StringIO(), width=120)
    console.print(table.paint(supervision, pids))
    painted = [line.split() for line in console.file.getvalue().splitlines()]
    return {cells[0]: cells[1:] for cells in painted if cells}


def test_every_worker_has_a_row_and_all_have_one():
    clock, supervision = scene()
    table = WorkersTable(Meter(clock), clock)
    table.paint(supervision, {})
    clock.advance_ms(1_000)
    supervision.heard(
        1, Report("running", records=3_000, lag=500, tasks=2, left_out={"dropped": 4, "skipped": 3})
    )
    supervision.heard(2, Report("restoring", records=0, lag=None, tasks=1))
    painted = rows(table, supervision, {1: 4711, 2: 4712})
    assert painted["1"] == ["4711", "running", "2", "3,000", "3,000", "500", "7", "0"]
    assert painted["2"] == ["4712", "restoring", "1", "0", "0", "?", "0", "0"]
    assert painted["all"] == ["1/2", "running", "3", "3,000", "3,000", "?", "7", "0"]


def test_a_dead_worker_keeps_its_records_and_has_no_process():
    clock, supervision = scene()
    supervision.heard(1, Report("running", records=10, lag=0, tasks=1))
    supervision.heard(2, Report("running", records=5, lag=0, tasks=1))
    supervision.ended(1, -9)
    painted = rows(WorkersTable(Meter(clock), clock), supervision, {2: 4712})
    assert painted["1"][:2] == ["backing", "off"]
    assert painted["all"][3] == "15"


def test_a_table_is_painted_and_taken_down(capsys):
    clock, supervision = scene()
    with WorkersTable(Meter(clock), clock) as table:
        table.update(supervision, {})
    capsys.readouterr()


def test_a_file_gets_lines(capsys):
    clock, supervision = scene()
    display = workers_display_for(LogOptions(), Meter(clock), clock)
    assert isinstance(display, WorkersLines)
    log_to_stderr(LogOptions())
    with display:
        display.update(supervision, {})
        supervision.heard(1, Report("running", records=10, lag=0, tasks=1))
        supervision.heard(2, Report("running", records=5, lag=2, tasks=1))
        display.update(supervision, {})
    take_down_logs()
    assert capsys.readouterr().err.split() == ["running", "15", "records", "0/s", "lag", "2"]


def test_records_from_internal_topics_are_named_apart(capsys):
    clock, supervision = scene()
    supervision.heard(1, Report("running", records=10, lag=0, tasks=1))
    assert "internal" not in rows(WorkersTable(Meter(clock), clock), supervision, {})["worker"]
    supervision.heard(2, Report("running", records=5, internal_records=1_020, lag=0, tasks=1))
    painted = rows(WorkersTable(Meter(clock), clock), supervision, {})
    assert painted["worker"][-1] == "internal"
    assert [painted[row][-1] for row in ("1", "2", "all")] == ["0", "1,020", "1,020"]
    log_to_stderr(LogOptions())
    with workers_display_for(LogOptions(), Meter(clock), clock) as display:
        display.update(supervision, {})
    take_down_logs()
    assert capsys.readouterr().err.endswith("lag         0  and 1,020 from internal topics\n")


def test_standbys_are_shown_where_there_are_any(capsys):
    clock, supervision = scene()
    supervision.heard(1, Report("running", lag=0, tasks=1, standbys=2, standby_lag=1_200))
    supervision.heard(2, Report("running", lag=0, tasks=1, standbys=1, standby_lag=34))
    painted = rows(WorkersTable(Meter(clock), clock), supervision, {})
    assert [painted[row][-2:] for row in ("1", "2", "all")] == [["2", "1,200"], ["1", "34"], ["3", "1,234"]]
    log_to_stderr(LogOptions())
    with workers_display_for(LogOptions(), Meter(clock), clock) as display:
        display.update(supervision, {})
    take_down_logs()
    assert capsys.readouterr().err.endswith("3 standbys, lag 1,234\n")
    supervision.heard(2, Report("running", lag=0, tasks=1, standbys=1, standby_lag=None))
    assert rows(WorkersTable(Meter(clock), clock), supervision, {})["all"][-2:] == ["3", "?"]

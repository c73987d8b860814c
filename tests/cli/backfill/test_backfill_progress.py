"""A backfill's progress: a bar or lines for each slice, with what is done, what is left, and how fast it goes."""

from __future__ import annotations

import pytest

from pystreams.backfill.compute.driver import Progress
from pystreams.backfill.display.slice_meter import SliceMeter, shortened
from pystreams.backfill.display.terminal import BarDisplay
from pystreams.cli.commands.backfill.progress import LineDisplay, display_for_terminal
from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.progress import LINE_INTERVAL_MS
from pystreams.clock import ManualClock
from pystreams.meter import Meter


def test_a_slice_is_the_sum_of_its_tasks():
    clock = ManualClock()
    meter = SliceMeter(0, "in", Meter(clock), tasks=2)
    meter.update(Progress(0, 0, 0, 600, False))
    assert meter.total is None, "as long as one task has not been heard of, nobody knows how much there is"
    meter.update(Progress(0, 1, 0, 400, False))
    clock.advance_ms(1_000)
    meter.update(Progress(0, 0, 250, 600, False))
    assert meter.numbers() == "250 of 1,000 records  250/s  3 s left"
    meter.update(Progress(0, 0, 600, 600, True))
    assert not meter.over
    clock.advance_ms(1_000)
    meter.update(Progress(0, 1, 390, 400, True))
    assert meter.over
    assert meter.numbers() == "990 records  495/s  2 s"


def test_a_task_that_is_tried_again_counts_anew():
    meter = SliceMeter(0, "in", Meter(ManualClock()), tasks=1)
    meter.update(Progress(0, 0, 500, 1_000, False))
    meter.update(Progress(0, 0, 10, 1_000, False))
    assert meter.done == 10
    assert meter.meter.rate() >= 0


def test_nothing_is_foretold_from_a_handful_of_records():
    clock = ManualClock()
    meter = SliceMeter(0, "in", Meter(clock), tasks=1)
    clock.advance_ms(10_000)
    meter.update(Progress(0, 0, 3, 281_313, False))
    assert meter.numbers() == "3 of 281,313 records  0/s"


def test_there_is_no_rate_before_there_was_time_for_one():
    meter = SliceMeter(0, "in", Meter(ManualClock()), tasks=1)
    meter.update(Progress(0, 0, 1, 1, True))
    assert meter.numbers() == "1 record"
    assert meter.remaining_s is None


def test_lines_come_at_begin_and_end_of_a_slice_and_now_and_then(capsys):
    clock = ManualClock()
    with LineDisplay(clock) as display:
        display.step("starting Spark")
        display.expect([("orders", 1), ("orders-by-customer-repartition", 1)])
        display.update(Progress(0, 0, 0, 1_000, False))
        display.update(Progress(0, 0, 10, 1_000, False))
        clock.advance_ms(int(LINE_INTERVAL_MS))
        display.update(Progress(0, 0, 500, 1_000, False))
        display.update(Progress(0, 0, 1_000, 1_000, True))
        display.update(Progress(0, 0, 1_000, 1_000, True))
        display.update(Progress(1, 0, 3, 3, True))
    assert capsys.readouterr().err.splitlines() == [
        "starting Spark",
        "slice 1 of 2  orders  0 of 1,000 records",
        "slice 1 of 2  orders  500 of 1,000 records  16/s  31 s left",
        "slice 1 of 2  orders  1,000 records  33/s  30 s",
        "slice 2 of 2  orders-by-customer-repartition  3 records",
    ]


@pytest.mark.parametrize("records,expected", [(50, 100), (100, 100), (0, 0)])
def test_bars_are_painted_and_taken_down(records, expected, capsys):
    with BarDisplay(ManualClock(), messages()) as display:
        display.step("starting Spark")
        display.expect([("orders", 1)])
        display.update(Progress(0, 0, records, expected, records == expected))
        display.step("handing over")
    assert "slice 1 of 1  orders" in capsys.readouterr().err


def test_a_file_gets_lines():
    assert isinstance(display_for_terminal(ManualClock()), LineDisplay)


def test_a_long_title_leaves_room_for_the_bar():
    assert shortened("a" * 80) == "a" * 33 + "…"

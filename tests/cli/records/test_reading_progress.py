"""How far a long input has been read is shown, a short one is not disturbed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pystreams.cli.records import reading_progress as module
from pystreams.cli.records.input_lines import InputLines, input_lines
from pystreams.cli.records.reading_progress import reading_progress
from pystreams.cli.terminal.progress import LINE_INTERVAL_MS
from pystreams.clock import ManualClock


@pytest.fixture
def big(tmp_path: Path) -> Path:
    file = tmp_path / "big.txt"
    file.write_text("line\n" * 100_000, encoding="utf-8")
    return file


def test_elsewhere_than_on_a_terminal_a_line_is_printed_now_and_then(big, capfd):
    clock = ManualClock()
    with input_lines(big, csv=False) as lines, reading_progress(lines, clock) as progress:
        reading = iter(lines)
        for count in range(1, 60_001):
            next(reading)
            if count % 25_000 == 0:
                clock.advance_ms(int(LINE_INTERVAL_MS))
            # Only every 256th is looked at.
            progress.update(count)
    printed = capfd.readouterr().err.splitlines()
    assert len(printed) == 2
    assert "records" in printed[0]
    assert "%" in printed[0]


def test_what_is_short_prints_nothing(big, capfd):
    with input_lines(big, csv=False) as lines, reading_progress(lines, ManualClock()) as progress:
        for count, _ in enumerate(lines, 1):
            progress.update(count)
    assert capfd.readouterr().err == ""


def test_of_a_pipe_no_share_is_shown(capfd):
    clock = ManualClock()
    lines = InputLines(io.StringIO("x\n"), "standard input")
    with reading_progress(lines, clock) as progress:
        clock.advance_ms(int(LINE_INTERVAL_MS))
        progress.update(256)
    printed = capfd.readouterr().err
    assert "256 records" in printed
    assert "%" not in printed


def test_on_a_terminal_a_bar_is_painted_when_it_takes_long_and_taken_down(big, monkeypatch):
    from rich.console import Console

    screen = io.StringIO()
    monkeypatch.setattr(module, "messages", lambda: Console(file=screen, force_terminal=True, width=100))
    clock = ManualClock()
    with input_lines(big, csv=False) as lines, reading_progress(lines, clock) as progress:
        progress.update(256)
        assert screen.getvalue() == ""
        for _ in lines:
            pass
        clock.advance_ms(2000)
        progress.update(512)
        assert "512 records" in screen.getvalue()
        assert "100%" in screen.getvalue()

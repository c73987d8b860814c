"""A table on a terminal shows every name in full."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pystreams.cli.terminal import console


def test_a_name_that_is_too_long_for_the_terminal_goes_on_in_the_next_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=30, color_system=None)
    monkeypatch.setattr(console, "output", lambda: terminal)
    console.show_table(["step", "dropped"], [["KSTREAM-AGGREGATE-0000000002", "15,323"]])
    text = shown.getvalue()
    assert "KSTREAM-AGGREGATE-" in text
    assert "0000000002" in text
    assert "…" not in text

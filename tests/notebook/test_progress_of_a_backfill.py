"""A backfill from Python shows its progress in a notebook or on a terminal, and nothing where there is neither."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """\
import sys
import threading

from pystreams import App
from pystreams.backfill import InlineExecutor, ProcessExecutor, backfill
from tests.backfill.kit import lines, memory

waits = False


def remainder(key, value):
    # In steps: Python handles a signal that comes just before a wait only after it.
    while waits and value == 1_500:
        threading.Event().wait(0.05)
    return value % 7


app = App("notes")
app.stream("numbers", key=str, value=int).group_by(remainder, key=int).count(name="remainders")
numbers = memory({"numbers": [lines((f"k{n}", n, n) for n in range(part, 2_000, 2)) for part in range(2)]})
in_steps = InlineExecutor(batch_rows=100)
"""

#: Each report is drawn, so that what is seen does not depend on the machine's speed.
AT_ONCE = """\
from pystreams.backfill.compute import driver
from pystreams.backfill.display import notebook

driver._PROGRESS_MS = notebook._PAUSE_MS = 0
"""


@dataclass
class Shown:
    """What a cell shows: by the id of its display, all contents one after the other."""

    contents: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    #: What it raised, and what it printed.
    error: str = ""
    printed: str = ""

    def add(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream":
            self.printed += content["text"]
        if kind in {"display_data", "update_display_data"}:
            shown = self.contents.setdefault(content["transient"]["display_id"], [])
            assert bool(shown) == (kind == "update_display_data"), "a display appears once, and then changes"
            shown.append(content["data"])

    @property
    def texts(self) -> list[str]:
        """Those of the only display."""
        (contents,) = self.contents.values()
        return [content["text/plain"] for content in contents]

    @property
    def html(self) -> str:
        """That of the only display, at its end."""
        (contents,) = self.contents.values()
        return contents[-1]["text/html"]


class Kernel:
    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, code: str, at: Callable[[Shown], bool] = lambda shown: False) -> Shown:
        """What a cell shows. It is interrupted once ``at`` is true of that."""
        shown, interrupted = Shown(), False

        def heard(message: dict[str, Any]) -> None:
            nonlocal interrupted
            shown.add(message)
            if not interrupted and at(shown):
                interrupted = True
                self._manager.interrupt_kernel()

        reply = self._client.execute_interactive(code, output_hook=heard, timeout=120)
        shown.error = reply["content"].get("ename", "")
        return shown


@pytest.fixture(scope="module")
def started() -> Iterator[Kernel]:
    manager, client = start_new_kernel(cwd=str(ROOT))
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


@pytest.fixture
def kernel(started: Kernel) -> Kernel:
    assert started.run(PROGRAM + AT_ONCE).error == ""
    return started


def call(staging: Path, more: str = "") -> str:
    return f"result = backfill(app, sources=numbers, staging={str(staging)!r}, {more})"


def records(text: str) -> int:
    """The number of records of the first slice."""
    found = re.search(r"([\d,]+) (of|records)", text.partition("tasks  ")[2])
    assert found, text
    return int(found[1].replace(",", ""))


def test_bars_appear_below_the_cell_move_and_end(kernel: Kernel, tmp_path: Path) -> None:
    shown = kernel.run(call(tmp_path / "staging", "executor=in_steps"))
    assert shown.error == ""
    assert shown.texts[0] == "slice 1 of 2  numbers  0 of 2 tasks  0 records"
    assert "slice 1 of 2  numbers  0 of 2 tasks  0 of 2,000 records" in shown.texts
    counts = [records(text) for text in shown.texts]
    assert counts == sorted(counts)
    assert len(set(counts)) > 5
    *slices, end = shown.texts[-1].splitlines()
    first, second = (re.split("  +", line)[:4] for line in slices)
    assert first == ["slice 1 of 2", "numbers", "2 of 2 tasks", "2,000 records"]
    assert second[:3] == ["slice 2 of 2", "notes-remainders-repartition", "2 of 2 tasks"]
    assert re.fullmatch(r"Computed in \d+ s\.", end)
    assert shown.html.count('<progress max="1" value="1"></progress>') == 2
    assert shown.printed == ""


def test_reports_of_worker_processes_move_the_same_bars(kernel: Kernel, tmp_path: Path) -> None:
    shown = kernel.run(call(tmp_path / "staging", "executor=ProcessExecutor(2)"))
    assert shown.error == ""
    assert "slice 1 of 2  numbers  2 of 2 tasks  2,000 records" in shown.texts[-1]
    assert "Computed in" in shown.texts[-1]


def test_an_interrupt_of_the_kernel_ends_the_bars_and_the_backfill_can_be_resumed(
    kernel: Kernel, tmp_path: Path
) -> None:
    staging = tmp_path / "staging"
    assert kernel.run("waits = True").error == ""
    shown = kernel.run(
        call(staging, "executor=in_steps"),
        at=lambda shown: bool(shown.contents) and records(shown.texts[-1]) > 500,
    )
    assert shown.error == "KeyboardInterrupt"
    assert re.search(
        rf"\nStopped after \d+ s\. Finished slices stay in {staging}: continue with resume=True\.$",
        shown.texts[-1],
    )
    assert kernel.run("waits = False").error == ""
    resumed = kernel.run(call(staging, "resume=True"))
    assert resumed.error == ""
    assert "Computed in" in resumed.texts[-1]


def test_what_a_function_raises_ends_the_bars(kernel: Kernel, tmp_path: Path) -> None:
    broken = "app = App('notes')\napp.stream('numbers', key=str, value=int).filter(lambda k, v: 1 // 0).to('copy')\n"
    shown = kernel.run(broken + call(tmp_path / "staging", "partitions={'copy': 1}"))
    assert shown.error == "ProcessingError"
    assert "\nFailed after" in shown.texts[-1]


def test_a_backfill_that_is_refused_shows_no_bar(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.run(call(tmp_path / "staging")).error == ""
    refused = kernel.run(call(tmp_path / "staging"))
    assert (refused.error, refused.contents) == ("StateError", {})


def test_a_program_can_do_without_bars_or_have_its_own(kernel: Kernel, tmp_path: Path) -> None:
    silent = kernel.run(call(tmp_path / "silent", "progress=False"))
    assert (silent.error, silent.contents, silent.printed) == ("", {}, "")
    own = kernel.run(
        "heard = []\n" + call(tmp_path / "own", "progress=heard.append") + "\nprint(heard[-1].finished)"
    )
    assert (own.error, own.contents, own.printed) == ("", {}, "True\n")


def script(folder: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM + call(folder / "staging") + "\nprint('done')"]


def test_a_script_without_a_terminal_prints_nothing_of_it(tmp_path: Path) -> None:
    done = subprocess.run(
        script(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_script_on_a_terminal_draws_bars_there(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        script(tmp_path), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=inside
    ) as work:
        os.close(inside)
        drawn = b""
        # A terminal that nobody has open any more is an error to read from.
        try:
            while part := os.read(terminal, 65536):
                drawn += part
        except OSError:
            pass
        assert work.stdout is not None
        assert work.stdout.read() == b"done\n"
    os.close(terminal)
    assert work.returncode == 0
    assert "slice 2 of 2  notes-remainders-repartition" in drawn.decode()

"""``run --profile`` shows where an application's time went, and ``--flame-graph`` draws it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from xml.etree import ElementTree as ET

import pytest

#: Three quarters of the time of both functions are in the first one, if nothing else keeps the processors busy. The
#: program itself says how long they took.
PROGRAM = """
import time
from pystreams import App

taken = {{"slow": 0.0, "quick": 0.0}}

def busy(name: str, rounds: int) -> int:
    started, total = time.perf_counter(), 0
    for n in range(rounds):
        total += n * n
    taken[name] += time.perf_counter() - started
    return total

def slow(value: int) -> int:
    busy("slow", 60_000)
    return value

def quick(value: int) -> int:
    busy("quick", 20_000)
    return value

def last(value: int) -> int:
    if value == {fails_at}:
        raise ValueError("the last one")
    return value

app = App("profiled")
app.stream("in", key=str, value=int).map_values(slow, step="slow").map_values(quick, step="quick").map_values(
    last, step="last"
).to("out", key=str, value=int)
"""

#: Each kind of work takes long enough to be seen.
COUNTS = """
from pystreams import App, Serde

def busy(rounds: int) -> None:
    for n in range(rounds):
        n * n

def encode(value: int) -> bytes:
    busy(10)
    return b"%d" % value

def decode(data: bytes) -> int:
    busy(5_000)
    return int.from_bytes(data)

app = App("counting", commit_interval_ms=20)
number = Serde.of(encode, decode)
numbers = app.stream("in", key=str, value=number)
numbers.group_by_key().count(name="counts")
numbers.flat_map_values(lambda value: [value] * 400).to("out", key=str, value=number, step="out")
"""


@pytest.fixture
def program(folder, pystreams):
    """Writes a program and 300 records for it; ``fails_at`` is the value that it cannot process."""
    pystreams("topics", "create", "in", "out")
    numbers = "".join(f"k={n}\n" for n in range(300))
    pystreams("produce", "in", "--key-separator", "=", "--value-type", "int", stdin=numbers)

    def write(text: str = PROGRAM, *, fails_at: int = -1) -> str:
        name = f"profiled_{os.urandom(4).hex()}"
        (folder / f"{name}.py").write_text(text.format(fails_at=fails_at), encoding="utf-8")
        return name

    return write


def seconds(table: str) -> dict[tuple[str, str], float]:
    """The seconds in a table, by step and part."""
    rows = [line.split("\t") for line in table.splitlines()]
    return {(step, part): float(taken) for step, part, taken, _ in rows}


def test_steps_have_the_time_of_their_functions_and_their_share_of_all(pystreams, program):
    name = program()
    ran = pystreams("run", name, "--until-caught-up", "--profile")
    assert ran.code == 0, ran.err
    table = seconds(ran.out)
    slow, quick = table["slow", "function"], table["quick", "function"]
    taken = sys.modules[name].taken
    share = taken["slow"] / (taken["slow"] + taken["quick"])
    assert slow / (slow + quick) == pytest.approx(share, abs=0.15), ran.out
    assert slow + quick == pytest.approx(sum(taken.values()), rel=0.2), ran.out
    assert table.get(("last", "all"), 0) < quick / 2, ran.out
    assert "Profile: stream threads were at work for" in ran.err
    check_shares(ran.out)


def check_shares(table: str) -> None:
    """They are of the time at work."""
    rows = [line.split("\t") for line in table.splitlines()]
    wholes = [row for row in rows if row[1] == "all" or row[0] == "(no step)"]
    assert sum(float(share.rstrip("%")) for _, _, _, share in wholes if share) == pytest.approx(100, abs=2)
    assert all((part == "idle") == (not share) for _, part, _, share in rows)


def test_decoding_encoding_producing_and_committing_have_rows_of_their_own(pystreams, program):
    ran = pystreams("run", program(COUNTS), "--until-caught-up", "--profile")
    assert ran.code == 0, ran.err
    seen = {("out", "encode"), ("out", "produce"), ("(no step)", "decode"), ("(no step)", "commit")}
    assert seen <= seconds(ran.out).keys(), ran.out


def test_the_flame_graph_stands_alone_and_shows_steps_and_functions(folder, pystreams, program):
    ran = pystreams("run", program(), "--until-caught-up", "--flame-graph", "time.svg")
    assert ran.code == 0, ran.err
    assert ran.out == ""
    assert "The flame graph is in time.svg" in ran.err
    text = (folder / "time.svg").read_text(encoding="utf-8")
    assert text.count("http") == 1  # the name of the format
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    titles = ET.fromstring(text).iterfind(".//{*}title")
    tips = {(title.text or "").partition(":")[0] for title in titles}
    assert {"process", "slow", "quick", "busy"} <= tips


def test_a_run_that_fails_has_a_profile_too(pystreams, program):
    ran = pystreams("run", program(fails_at=99), "--until-caught-up", "--profile")
    assert ran.code == 1
    assert seconds(ran.out)["slow", "function"] > 0
    assert "the last one" in ran.err


def test_ctrl_c_ends_with_the_profile(program):
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "run", program(), "--profile"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        last_resort = Timer(60, running.kill)
        last_resort.start()
        for line in running.stderr:
            if line.startswith("running"):
                break
        running.send_signal(signal.SIGINT)
        table, rest = running.stdout.read(), running.stderr.read()
    last_resort.cancel()
    assert running.returncode == 0, rest
    assert "all is committed" in rest
    assert table.count("\t") >= 3, rest


@pytest.mark.parametrize("option", [["--profile"], ["--flame-graph", "time.svg"]], ids=" ".join)
def test_workers_are_refused_with_what_to_do_instead(pystreams, program, option):
    refused = pystreams("run", program(), *option, "--workers", "2")
    assert refused.code == 2
    assert f"{option[0]} looks into one process, and --workers starts others" in refused.err
    assert "leave --workers (PYSTREAMS_WORKERS) out" in refused.err


def test_a_picture_that_cannot_be_written_is_refused_before_the_run(pystreams, program):
    refused = pystreams("run", program(), "--until-caught-up", "--flame-graph", "missing/time.svg")
    assert refused.code == 2
    assert "--flame-graph cannot write missing/time.svg" in refused.err
    assert pystreams("consume", "out").lines == []

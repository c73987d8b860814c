"""``pystreams doctor`` finds what would keep an application from starting, or harm it, and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pystreams.cli.commands.doctor.machine import file_system
from tests.cli.wordcount_kit import WORDCOUNT

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(folder, pystreams, on_disk, monkeypatch):
    """A program with its topics, and a place for its state that survives a restart of the machine."""
    monkeypatch.setenv("PYSTREAMS_STATE_DIR", str(on_disk))
    name = f"examined_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(WORDCOUNT.format(id="examined"), encoding="utf-8")
    pystreams("topics", "create", "lines", "word-counts", "--partitions", "2")
    return name


def line_of(shown, subject):
    """The sign and the line about a subject."""
    (line,) = [line for line in shown.lines if line[3:].startswith(f"{subject}:")]
    return line[:3].strip(), line


def test_an_application_that_can_start_gets_no_remark(pystreams, program):
    shown = pystreams("doctor", program)
    assert shown.code == 0
    assert "It can start." in shown.err
    subjects = [line[3:].partition(":")[0] for line in shown.lines]
    assert subjects == [
        *("versions", "memory", "state", "program", "log", "topics"),
        *("retention", "last run", "group", "clocks", "open files"),
    ]
    assert {line[:3].strip() for line in shown.lines} == {"ok"}
    assert "4 tasks" in line_of(shown, "topics")[1]


def test_nothing_is_changed(folder, pystreams, program):
    def content():
        topics = pystreams("topics", "list", "--internal").out
        return topics, sorted(path for path in folder.rglob("*") if "log.db" not in path.name)

    before = content()
    pystreams("doctor", program)
    assert content() == before


def test_without_a_log_the_machine_and_the_program_are_examined(pystreams, program):
    shown = pystreams("doctor", program, "--embedded-log", "nowhere.db")
    assert shown.code == 1
    assert line_of(shown, "program")[0] == "ok"
    sign, line = line_of(shown, "log")
    assert sign == "x"
    assert "nowhere.db" in line
    assert "It could not start: 1 problem." in shown.err


def test_a_missing_topic_is_named_with_the_command_that_creates_it(pystreams, program):
    pystreams("topics", "delete", "lines", "--yes")
    shown = pystreams("doctor", program)
    assert shown.code == 1
    assert line_of(shown, "topics")[0] == "x"
    assert "pystreams topics create lines" in shown.out


JOINED = """
from pystreams import App

app = App("joined")
rates = app.table("rates", key=str, value=int, name="rates")


def price(order: int, rate: int) -> int:
    return order * rate


app.stream("orders", key=str, value=int).join(rates, price).to("prices")
"""


def test_topics_that_are_joined_and_have_other_numbers_of_partitions_are_a_problem(folder, pystreams):
    (folder / "joined_program.py").write_text(JOINED, encoding="utf-8")
    pystreams("topics", "create", "orders", "prices", "--partitions", "4")
    pystreams("topics", "create", "rates", "--partitions", "3")
    shown = pystreams("doctor", "joined_program")
    assert shown.code == 1
    sign, line = line_of(shown, "topics")
    assert sign == "x"
    assert "orders" in shown.out
    assert "rates" in shown.out
    assert "partitions" in line
    pystreams("topics", "delete", "rates", "--yes")
    pystreams("topics", "create", "rates", "--partitions", "4")
    assert line_of(pystreams("doctor", "joined_program"), "topics")[0] == "ok"


def test_addresses_that_nobody_listens_at_are_named(pystreams, program):
    shown = pystreams("doctor", program, "--bootstrap-servers", "127.0.0.1:1,127.0.0.1:2")
    assert shown.code == 1
    sign, line = line_of(shown, "addresses")
    assert sign == "x"
    assert "127.0.0.1:1" in line
    assert "127.0.0.1:2" in line


def test_records_from_the_future_are_noticed(pystreams, program):
    later = int(1000 * time.time()) + 3_600_000
    value = f'{{"value": "to be", "timestamp": {later}, "partition": 1}}\n'
    assert pystreams("produce", "lines", "--json", stdin=value).code == 0
    shown = pystreams("doctor", program)
    assert shown.code == 0
    sign, line = line_of(shown, "clocks")
    assert sign == "!"
    assert "lines-1 from offset 0" in line
    assert "It can start, 1 remark." in shown.err


def test_topics_that_would_delete_what_is_written_are_a_problem(pystreams, program):
    pystreams("topics", "alter", "word-counts", "-c", "retention.ms=1000")
    assert pystreams("produce", "lines", "--json", stdin='{"value": "to be", "timestamp": 5}\n').code == 0
    shown = pystreams("doctor", program)
    assert shown.code == 1
    assert line_of(shown, "retention")[0] == "x"


def test_a_program_that_would_lose_stored_content_is_a_problem(folder, pystreams, program):
    pystreams("produce", "lines", stdin="to be\n")
    assert pystreams("run", program, "--until-caught-up").code == 0
    assert "state of 2 tasks" in line_of(pystreams("doctor", program), "state")[1]
    path = folder / f"{program}_2.py"
    path.write_text(
        WORDCOUNT.format(id="examined").replace('name="counts"', 'name="other"'), encoding="utf-8"
    )
    shown = pystreams("doctor", path.stem)
    assert shown.code == 1
    assert line_of(shown, "last run")[0] == "x"


def test_a_budget_beyond_the_memory_is_noticed(pystreams, program):
    shown = pystreams("doctor", program, "-s", f"rocksdb_block_cache_bytes={1 << 42}")
    assert line_of(shown, "memory")[0] == "!"


def test_a_state_folder_that_is_a_file_is_a_problem(folder, pystreams, program):
    (folder / "state").write_text("", encoding="utf-8")
    shown = pystreams("doctor", program, "--state-dir", "state")
    assert shown.code == 1
    assert "is a file" in line_of(shown, "state")[1]


def test_state_in_memory_is_noticed(pystreams, program):
    in_memory = Path("/dev/shm")
    if not in_memory.is_dir() or file_system(in_memory) != "tmpfs":
        pytest.skip("this machine has no file system in memory at /dev/shm")
    shown = pystreams("doctor", program, "--state-dir", str(in_memory / "examined"))
    assert line_of(shown, "state")[0] == "!"


def test_a_low_limit_of_open_files_is_noticed(folder, program):
    command = f"ulimit -n 500 && exec {sys.executable} -m pystreams doctor {program}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("!  open files: the limit is 500") for line in done.stdout.splitlines())


def test_a_program_that_cannot_be_built_is_a_problem(folder, pystreams):
    (folder / "broken_program.py").write_text(
        'from pystreams import App\napp = App("broken")\napp.stream("a").to("b")\napp.table("a")\n',
        encoding="utf-8",
    )
    shown = pystreams("doctor", "broken_program")
    assert shown.code == 1
    assert line_of(shown, "program")[0] == "x"

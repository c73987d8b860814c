"""``run --workers``: several processes share the work, are kept alive, and end together, however they end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import Start, WorkersRun
from tests.live.support import Log, eventually

WORDCOUNT = """
from pystreams import App

app = App("wordcount", poll_ms=10)
app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word).count(
    name="counts"
).to_stream().to("word-counts")
"""


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    """The log that commands find in the folder, and the program beside it."""
    (folder / ".pystreams").mkdir()
    (folder / "words.py").write_text(WORDCOUNT, encoding="utf-8")
    log = Log(folder / ".pystreams")
    log.create("lines", "word-counts", partitions=4)
    yield log
    log.close()


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    runs: list[WorkersRun] = []

    def start(*arguments: str, under: Sequence[str] = (), **environment: str) -> WorkersRun:
        runs.append(WorkersRun(folder, *arguments, under=under, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def write_lines(log: Log, number: int, first: int = 0) -> None:
    log.write("lines", [(str(i), f"all {i % 50}", i) for i in range(first, first + number)], value=str)


def counted(log: Log) -> int:
    """How often the word of every line has been counted."""
    return log.table("word-counts").get("all", 0)


def test_they_share_the_work_and_all_stop_when_the_application_has_caught_up(log, start):
    write_lines(log, 2_000)
    run = start("words", "--workers", "3", "--until-caught-up")
    run.ends_with(0)
    assert counted(log) == 2_000
    assert "all is committed: 2,000 records, and 4,000 from internal topics, in" in run.text
    assert "3 workers, 0 restarts" in run.text


def check_that_it_stops(log: Log, run: WorkersRun, number: signal.Signals) -> None:
    """The signal has all of them commit and stop."""
    run.send(number)
    run.ends_with(0)
    assert "all is committed" in run.text
    assert log.admin.group_members("wordcount") == []


def test_a_closed_terminal_has_all_of_them_commit_and_stop(log, start):
    run = start("words", "--workers", "2")
    run.says("^running ")
    write_lines(log, 500)
    eventually(lambda: counted(log) == 500)
    check_that_it_stops(log, run, signal.SIGHUP)


def test_a_worker_that_is_killed_is_started_again_and_nothing_is_lost_or_doubled(log, start):
    run = start("words", "--workers", "2")
    before = run.all_there(2)
    run.says("^running ")
    write_lines(log, 3_000)
    os.kill(before[1], signal.SIGKILL)
    told = run.says(r"worker 1 was killed by SIGKILL.*, after .* s; it starts again in (0\.\d) s")
    assert 0.2 <= float(told[1]) <= 0.4
    after = run.all_there(2)
    assert after[2] == before[2]
    assert after[1] != before[1]
    write_lines(log, 3_000, first=3_000)
    eventually(lambda: counted(log) == 6_000, f"all is counted, {run.text}")
    check_that_it_stops(log, run, signal.SIGTERM)
    assert "2 workers, 1 restart." in run.text


def test_no_worker_outlives_a_supervisor_that_is_killed(log, start):
    run = start("words", "--workers", "2")
    run.all_there(2)
    run.says("running")
    write_lines(log, 500)
    eventually(lambda: counted(log) > 0)
    run.send(signal.SIGKILL)
    run.ends_with(-signal.SIGKILL)
    # They have left, too: nobody has to notice that they are gone.
    assert log.admin.group_members("wordcount") == []


def test_no_worker_outlives_a_supervisor_that_is_killed_while_it_starts_them(log, start):
    run = start("words", "--workers", "2")
    eventually(run.workers)
    run.send(signal.SIGKILL)
    run.ends_with(-signal.SIGKILL)


def test_ctrl_c_before_anything_has_begun_ends_everything(log, start):
    run = start("words", "--workers", "2")
    eventually(run.workers)
    run.send(signal.SIGINT)
    run.ends_with(0)


def test_a_second_ctrl_c_kills_what_does_not_stop(log, folder, start):
    stuck = folder / "is-stuck"
    wait = (
        "import time\nfrom pathlib import Path\n\n\n"
        f"def wait(line):\n    Path({str(stuck)!r}).touch()\n    time.sleep(600)\n    return [line]\n\n"
    )
    (folder / "stuck.py").write_text(wait + WORDCOUNT.replace("str.split", "wait"), encoding="utf-8")
    run = start("stuck", "--workers", "2")
    # Records come when both run: a worker that is stuck before lets no other one into the group.
    run.says("running")
    write_lines(log, 10)
    eventually(stuck.exists)
    run.send(signal.SIGINT)
    run.says("Stopping: the workers commit")
    run.send(signal.SIGINT)
    run.ends_with(130)


@pytest.mark.parametrize(
    "arguments,code,answer",
    [
        (["wrods"], 3, "did you mean words?"),
        (["words", "-s", "comit_interval_ms=5"], 2, "did you mean commit_interval_ms?"),
        (["words", "--bootstrap-servers", "127.0.0.1:1"], 4, "Kafka cannot be reached"),
    ],
)
def test_a_mistake_is_reported_once_and_ends_the_run(log, start, arguments, code, answer):
    run = start(*arguments, "--workers", "2")
    run.ends_with(code)
    assert run.text.count(answer) == 1
    assert "starts again" not in run.text
    assert "Traceback" not in run.text


@pytest.mark.parametrize("number", ["0", "-1", "two", "100000"])
def test_a_wrong_number_is_refused(log, pystreams, number):
    refused = pystreams("run", "words", "--workers", number)
    assert refused.code == 2
    assert "--workers" in refused.err


def test_a_record_that_no_worker_gets_past_ends_the_run_with_its_error(log, folder, start):
    (folder / "halves.py").write_text(
        "from pystreams import App\n"
        "app = App('halves', poll_ms=10)\n"
        "def half(text):\n"
        "    return str(int(text) // 2)\n"
        "app.stream('lines', value=str).map_values(half).to('word-counts')\n",
        encoding="utf-8",
    )
    run = start("halves", "--workers", "2")
    run.says("^running ")
    log.write("lines", [("k", "four", 0)], value=str)
    run.ends_with(1)
    assert "halves.py:4" in run.text
    assert "it happened 3 times: every worker fails with it" in run.text
    assert run.text.count("it starts again in") == 2


def test_more_workers_than_the_system_has_room_for_are_refused_and_none_is_left(log, start):
    limited = ["sh", "-c", 'ulimit -n 20; exec "$@"', "sh"]
    run = start("words", "--workers", "10", under=limited)
    run.ends_with(1)
    assert "a worker cannot be started" in run.text
    assert "Too many open files" in run.text
    assert "Traceback" not in run.text


def test_the_settings_in_force_are_shown_without_starting_anything(log, pystreams):
    shown = pystreams("run", "words", "--workers", "3", "--threads", "2", "--show-config")
    assert shown.code == 0
    assert "num.stream.threads\t2\tcommand line" in shown.lines


def test_logs_bear_the_workers_numbers_and_output_does_not(log, folder, start):
    (folder / "talking.py").write_text(
        "import sys\n" + WORDCOUNT + "\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n",
        encoding="utf-8",
    )
    run = start("talking", "--workers", "2", "--threads", "2", "--verbose")
    for number in (1, 2):
        for thread in (1, 2):
            run.says(rf"worker {number} \| .*wordcount-[\w-]+-{number}-StreamThread-{thread}\b")
    run.send(signal.SIGINT)
    run.ends_with(0)
    lines = run.text.splitlines()
    assert lines.count("to stdout") == 2
    assert {"worker 1 | to stderr", "worker 2 | to stderr"} <= set(lines)


def test_more_workers_than_tasks_are_reported_to_be_idle(log, start):
    log.create("one", "one-out")
    (Path.cwd() / "narrow.py").write_text(
        "from pystreams import App\napp = App('narrow', poll_ms=10)\napp.stream('one').to('one-out')\n",
        encoding="utf-8",
    )
    run = start("narrow", "--workers", "2")
    run.says(r"worker \d has no task: .* the application has one task")
    run.send(signal.SIGINT)
    run.ends_with(0)


def test_the_group_takes_over_from_a_worker_that_is_stopped(log, start):
    quick = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200}
    settings = [part for name, value in quick.items() for part in ("-s", f"{name}={value}")]
    run = start("words", "--workers", "2", *settings)
    stopped = run.all_there(2)[1]
    run.says("^running ")
    os.kill(stopped, signal.SIGSTOP)
    write_lines(log, 1_000)
    # It would hold the state of its tasks for ever.
    run.says("worker 1 has not reported for 1 s")
    run.says("worker 1 was killed by its supervisor, because it had not reported for 1 s, after")
    eventually(lambda: counted(log) == 1_000, "the other worker has done it all")
    run.all_there(2)
    check_that_it_stops(log, run, signal.SIGINT)

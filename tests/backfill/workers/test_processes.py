"""E1: worker processes stage what an inline run stages, in bytes, whatever dies meanwhile; and each continues what the
other one has begun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams import App
from pystreams.backfill import backfill
from pystreams.backfill.compute.driver import Planned, Progress, run
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.workers.errors import WorkerError
from pystreams.backfill.workers.processes import ATTEMPTS_MAX, ProcessExecutor
from pystreams.errors import ProcessingError, StateError
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.programs import PROGRAMS, history, word_count
from tests.kafka.server import ROOT
from tests.live.support import eventually

TWO = ProcessExecutor(processes=2)

pytestmark = pytest.mark.usefixtures("same_workers")


def parquet_files(folder: Path) -> list[str]:
    """What is staged, by path within the folder of its slice."""
    return sorted(
        str(path.relative_to(folder)).split("/", 1)[1] for path in folder.glob("slice-*/**/*.parquet")
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_processes_give_what_an_inline_run_gives(name: str, tmp_path: Path) -> None:
    # A cache that holds some of the keys: what it forwards depends on everything that came before.
    program = PROGRAMS[name](statestore_cache_max_bytes=600)
    source = memory(history(name, 7, partitions=3))
    inline = Backfill(program, source, tmp_path / "inline", commit_records=16).run()
    processes = Backfill(program, source, tmp_path / "processes", commit_records=16, executor=TWO).run()
    assert any(everything(inline)["sinks"].values())
    assert everything(processes) == everything(inline)
    assert parquet_files(tmp_path / "processes") == parquet_files(tmp_path / "inline")


def test_the_driver_hears_of_every_task(tmp_path: Path) -> None:
    one = Backfill(word_count(), memory(history("word count", 5, 2)), tmp_path, executor=TWO)
    heard: list[Progress] = []
    planned = Planned(one.loaded, one.application, one.plan, one.manifest, one.source)
    run(planned, TWO, str(tmp_path), progress=heard.append)
    ended = {(progress.slice, progress.task) for progress in heard if progress.finished}
    assert ended == {(slice, task) for slice in (0, 1) for task in (0, 1)}


def test_each_continues_what_the_other_one_computed(tmp_path: Path) -> None:
    past = history("word count", 5, 3)
    first = {topic: [one[:20] for one in partitions] for topic, partitions in past.items()}
    whole = everything(Backfill(word_count(), memory(past), tmp_path / "whole").run())["changelogs"]
    settings = {"application_id": "words"}
    for before, after in ((TWO, InlineExecutor()), (InlineExecutor(), TWO)):
        one, two = tmp_path / f"{type(before).__name__} 1", tmp_path / f"{type(before).__name__} 2"
        backfill(word_count(), sources=memory(first), staging=one, executor=before, settings=settings)
        result = backfill(
            word_count(), sources=memory(past), staging=two, executor=after, settings=settings, previous=one
        )
        assert everything(result)["changelogs"] == whole


def test_a_function_that_raises_is_named_as_inline(tmp_path: Path) -> None:
    app = App("divides")
    app.stream("numbers", key=str, value=int).map_values(lambda number: 6 // number).to("out", value=int)
    past = {"numbers": [lines([("a", 1, 1), ("b", 0, 2)]), lines([("c", 1, 1)])]}
    with pytest.raises(ProcessingError) as inline:
        Backfill(app, memory(past), tmp_path / "inline").run()
    with pytest.raises(ProcessingError) as raised:
        Backfill(app, memory(past), tmp_path / "processes", executor=TWO).run()
    assert str(raised.value) == str(inline.value)
    assert isinstance(raised.value.__cause__, WorkerError)
    assert "ZeroDivisionError" in str(raised.value.__cause__)


def test_tasks_run_in_several_processes_which_are_others_for_another_backfill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pids_of_tasks(tmp_path / "first")
    # The same executor, without the fixture.
    monkeypatch.undo()
    assert len(first) == 2
    assert str(os.getpid()) not in first
    assert not first & pids_of_tasks(tmp_path / "second")


def pids_of_tasks(folder: Path) -> set[str]:
    """The processes in which the tasks of a backfill ran."""
    began = folder / "began"
    began.mkdir(parents=True)

    def pid_beside_another(_: int) -> int:
        (began / str(os.getpid())).touch()
        eventually(lambda: len(list(began.iterdir())) == 2)
        return os.getpid()

    app = App("pids")
    app.stream("numbers", key=str, value=int).map_values(pid_beside_another).to("pids", value=int)
    past = {"numbers": [lines([(str(n), n, n) for n in range(20)]) for _ in range(4)]}
    result = Backfill(app, memory(past), folder / "work", executor=TWO).run()
    values = [record.value for records in result.sink("pids").values() for record in records]
    pids = {str(int.from_bytes(value or b"", "big")) for value in values}
    assert pids == {path.name for path in began.iterdir()}
    return pids


def killing_itself(marks: Path, times: int) -> App:
    """Word count whose process dies at a record of task 1, so often."""

    def words(line: str) -> list[str]:
        if line == "last words" and len(list(marks.iterdir())) < times:
            (marks / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return line.split()

    app = App("mortal")
    split = app.stream("lines", key=str, value=str).flat_map_values(words)
    split.group_by(lambda word: word).count(name="counts").to_stream().to("word-counts", value=int)
    return app


PAST = {"lines": [lines([(str(n), "to be or not", n) for n in range(900)], value=str) for _ in range(3)]}
PAST["lines"][1] = [*PAST["lines"][1], *lines([("end", "last words", 901)], value=str)]


def test_a_task_whose_process_dies_is_begun_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    inline = Backfill(killing_itself(marks, 0), memory(PAST), tmp_path / "inline").run()
    killed = Backfill(killing_itself(marks, 1), memory(PAST), tmp_path / "killed", executor=TWO).run()
    assert len(list(marks.iterdir())) == 1
    assert everything(killed) == everything(inline)
    assert caplog.text.count("its task is begun again") == 1
    assert parquet_files(tmp_path / "killed") == parquet_files(tmp_path / "inline")
    assert not list((tmp_path / "killed").rglob("*.sst")), "stores of tasks that died"


def test_a_task_whose_process_always_dies_is_given_up_and_can_be_resumed(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    one = Backfill(killing_itself(marks, ATTEMPTS_MAX), memory(PAST), tmp_path / "killed", executor=TWO)
    with pytest.raises(StateError, match=f"worker processes died {ATTEMPTS_MAX} times"):
        one.run()
    inline = Backfill(killing_itself(marks, 0), memory(PAST), tmp_path / "inline").run()
    one.executor = InlineExecutor()
    assert everything(one.run(resume=True)) == everything(inline)


#: A script without a guard: a process that imported it again would run it again.
SCRIPT = """
import os, sys
from pystreams import App
from pystreams.backfill import EmbeddedSource, ProcessExecutor, backfill

print("begun", flush=True)
app = App("upper")

def upper(text):
    if len(sys.argv) > 1:
        open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
        import time
        time.sleep(600)
    return text.upper()

app.stream("lines", key=str, value=str).map_values(upper).to("out", value=str)
result = backfill(app, sources=EmbeddedSource("log.db"), staging="staging", executor=ProcessExecutor(processes=2))
print(sum(result.written().values()))
"""


@pytest.fixture
def script(tmp_path: Path) -> list[str]:
    """The command that runs the script in ``tmp_path``, where its log is."""
    from pystreams import open_log

    with open_log(tmp_path / "log.db") as log:
        log.create_topic("lines", partitions=2)
        log.create_topic("out", partitions=2)
        for number in range(40):
            log.produce("lines", f"k{number}", "text")
    (tmp_path / "script.py").write_text(SCRIPT)
    return [sys.executable, str(tmp_path / "script.py")]


def test_a_number_is_that_of_processes() -> None:
    executor = ProcessExecutor(4)
    assert executor.processes == 4
    assert executor.batch_rows == InlineExecutor().batch_rows


def test_a_script_needs_no_guard(script: list[str], tmp_path: Path) -> None:
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert (done.returncode, done.stdout.split()) == (0, ["begun", "40"]), done.stderr


def test_workers_do_not_outlive_their_driver(script: list[str], tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with subprocess.Popen([*script, str(marks)], cwd=tmp_path, env=ENVIRONMENT) as driver:
        eventually(lambda: len(list(marks.iterdir())) == 2, "both workers are at work")
        driver.kill()
    workers = [int(path.name) for path in marks.iterdir()]
    eventually(lambda: not [pid for pid in workers if _runs(pid)], "the workers have ended")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False

"""What two runs leave in one staging folder never mixes, and what is not whole is not taken for a result."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.api import backfill
from pystreams.backfill.compute.driver import Progress
from pystreams.backfill.compute.executor import Report, SliceJob
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import MemorySource
from pystreams.errors import ConfigError, StateCorruptedError, StateError
from pystreams.handlers import ErrorContext, Response
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from tests.backfill.kit import Backfill, History, driven, everything, lines, memory
from tests.backfill.programs import history, self_joined, word_count

PAST = history("word count", 6, partitions=2)
OTHER_PAST = history("word count", 7, partitions=2)


@dataclass
class Meanwhile(InlineExecutor):
    """Somebody else does something while a slice is computed: before its tasks, or after them."""

    slice: int = 0
    before: Callable[[], Any] = field(default=lambda: None)
    after: Callable[[], Any] = field(default=lambda: None)

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        at_work = job.work.slice.index == self.slice
        if at_work:
            self.before()
        outcomes = super().compute(job, report)
        if at_work:
            self.after()
        return outcomes


def run(past: History, staging: Path, **given: Any) -> Any:
    return backfill(word_count(), sources=memory(past), staging=staging, commit_records=16, **given)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("slice", [0, 1])
@pytest.mark.parametrize("how", ["resume", "overwrite"])
def test_the_driver_that_began_later_goes_on(how: str, slice: int, when: str, tmp_path: Path) -> None:
    staging, second = tmp_path / "staging", []
    past = PAST if how == "resume" else OTHER_PAST
    at_that_point: dict[str, Any] = {when: lambda: second.append(run(past, staging, **{how: True}))}
    executor = Meanwhile(slice=slice, **at_that_point)
    with pytest.raises(StateError, match="another process continues this backfill"):
        run(PAST, staging, executor=executor)
    expected = everything(run(past, tmp_path / "alone"))
    assert everything(second[0]) == expected
    assert everything(run(past, staging, resume=True)) == expected


def test_a_run_that_died_leaves_nothing_once_another_goes_on(tmp_path: Path) -> None:
    staging = tmp_path / "staging"

    def dies() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(PAST, staging, executor=Meanwhile(slice=1, after=dies))
    # A folder of the user's own, which is not ours to delete.
    (staging / "pystreams-backfill-examples").mkdir()
    assert len(list(staging.glob("slice-*"))) == 2
    again = run(PAST, staging, resume=True)
    assert {path.name for path in staging.glob("slice-*")} == set(again.manifest.folders.values())
    assert (staging / "pystreams-backfill-examples").exists()
    anew = run(OTHER_PAST, staging, overwrite=True)
    assert {path.name for path in staging.glob("slice-*")} == set(anew.manifest.folders.values())
    assert everything(anew) == everything(run(OTHER_PAST, tmp_path / "alone"))


KILLED = """
import os, signal, sys
from pathlib import Path
from pystreams.backfill.compute.inline import InlineExecutor
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count

class Dying(InlineExecutor):
    def compute(self, job, report):
        def dies(task, records, finished):
            if job.work.slice.index == 1 and records:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().compute(job, dies)

source = memory(history("word count", 6, partitions=2))
Backfill(word_count(), source, Path(sys.argv[1]), executor=Dying(), commit_records=16).run()
"""


def test_what_a_killed_run_had_open_is_deleted(tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(staging)]
    died = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert list(staging.glob("slice-01-*/pystreams-backfill-*/*"))
    resumed = run(PAST, staging, resume=True)
    assert {path.name for path in staging.glob("slice-*")} == set(resumed.manifest.folders.values())
    assert not list(staging.glob("**/pystreams-backfill-*"))
    assert everything(resumed) == everything(run(PAST, tmp_path / "alone"))


def test_a_slice_that_lacks_a_task_is_not_resumed(tmp_path: Path) -> None:
    folders = run(PAST, tmp_path / "staging").manifest.folders
    shutil.rmtree(tmp_path / "staging" / folders[0] / "task-1")
    with pytest.raises(StateCorruptedError, match=r"slice 0 .* is incomplete") as raised:
        run(PAST, tmp_path / "staging", resume=True)
    assert "outcomes of the tasks 0, but should have those of the tasks 0 to 1" in raised.value.why


def test_a_slice_with_one_task_too_many_is_not_resumed(tmp_path: Path) -> None:
    folders = run(PAST, tmp_path / "staging").manifest.folders
    folder = tmp_path / "staging" / folders[0]
    shutil.copytree(folder / "task-1", folder / "task-2")
    with pytest.raises(StateCorruptedError, match="is incomplete"):
        run(PAST, tmp_path / "staging", resume=True)


@pytest.mark.parametrize("place", ["records", "state"])
def test_rows_that_a_task_has_left_are_missed(place: str, tmp_path: Path) -> None:
    result = run(PAST, tmp_path / "staging")
    for path in (tmp_path / "staging").glob(f"slice-01-*/task-0/{place}"):
        shutil.rmtree(path)
    read = result.changelog if place == "state" else result.sink
    with pytest.raises(StateError, match="the result of slice 1 of the backfill cannot be found"):
        read("counts" if place == "state" else "word-counts")


class DiedError(Exception):
    """The driver dies."""


def begun(staging: Path, **given: Any) -> None:
    """A backfill with one slice done, of two."""

    def dies() -> None:
        raise DiedError

    with pytest.raises(DiedError):
        run(PAST, staging, executor=Meanwhile(slice=1, before=dies), **given)


def dropping(context: ErrorContext) -> Response:
    return Response.CONTINUE


def unwrapped(name: str, supplier: Any) -> Any:
    return supplier


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"deserialization_exception_handler": "continue"}, "was fail, now it is continue"),
        ({"default_timestamp_extractor": "wallclock"}, "was None, now it is wallclock"),
        ({"production_exception_handler": dropping}, "was fail, now it is dropping"),
        ({"processor_wrapper": unwrapped}, "was None, now it is unwrapped"),
        ({"use.latest.version": True}, "was not there, now it is true"),
    ],
)
def test_other_settings_do_not_go_on_with_it(settings: dict[str, Any], told: str, tmp_path: Path) -> None:
    begun(tmp_path / "staging")
    with pytest.raises(ConfigError, match="begun with other settings") as raised:
        run(PAST, tmp_path / "staging", resume=True, settings=settings)
    assert told in raised.value.why
    # What changes nothing may change.
    same = {"commit_interval_ms": 7, "state_dir": str(tmp_path), "num_stream_threads": 2}
    resumed = run(PAST, tmp_path / "staging", resume=True, settings=same)
    assert everything(resumed) == everything(run(PAST, tmp_path / "alone"))
    # Nothing is left to compute: the result may be handed over, whatever is set now.
    assert everything(run(PAST, tmp_path / "staging", resume=True, settings=settings)) == everything(resumed)


def test_another_source_does_not_go_on_with_it(tmp_path: Path) -> None:
    class Elsewhere(MemorySource):
        description = "s3://key:secret@bucket/archive"  # type: ignore[assignment]

    begun(tmp_path / "staging")
    there = memory(PAST)
    with pytest.raises(ConfigError, match="from another source") as raised:
        backfill(
            word_count(),
            sources=Elsewhere(there.counts, there.batches),
            staging=tmp_path / "staging",
            resume=True,
        )
    assert "records from s3://key:***@bucket/archive" in raised.value.why
    assert "secret" not in str(raised.value)


def test_what_a_finished_task_was_expected_to_read_is_what_it_has_read(tmp_path: Path) -> None:
    """Compaction has left three of ten offsets."""
    kept = RecordBatch("lines", 0, [None] * 3, [b"a", b"b", b"c"], [1, 2, 3], [0, 5, 8], None, 10)
    source = MemorySource({"lines": 1}, {TopicPartition("lines", 0): [kept]})
    heard: list[Progress] = []
    backfill(word_count(), sources=source, staging=tmp_path / "staging", progress=heard.append)
    told = [(one.records, one.expected, one.finished) for one in heard if one.slice == 0]
    assert told[0] == (0, 10, False)
    assert told[-1] == (3, 3, True)


def test_what_a_sub_topology_drops_is_counted_once_though_it_is_visited_twice(tmp_path: Path) -> None:
    program = partial(self_joined, deserialization_exception_handler="continue")
    good = lines([("a", 1, 1), ("b", 3, 2), ("c", 4, 3)])
    past = {"amounts": [[good[0], good[1]._replace(value=b"bad"), good[2]]]}
    result = Backfill(program(), memory(past), tmp_path / "staging").run()
    done = result.manifest.slices
    assert [one.subtopology for one in result.plan.slices] == [0, 0]
    assert sum(one.dropped for one in done.values()) == driven(program(), past).dropped == 1
    assert sum(one.records for one in done.values()) == 3 + 2

"""A newer version goes on with the files that an older version has written: log, state directory, snapshots.

``older_versions`` has recordings of such files. Nothing in them is refused, and the results are those of a run without
a stop. The clock goes on from the time of the recording. By today's clock the state would be older than the day for
which changelogs keep deletions; such state is restored from the changelogs, which is the last test.
"""

from __future__ import annotations

import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pystreams.metrics import names
from tests.live.older_versions.program import (
    HALF,
    IN_MEMORY,
    INPUTS,
    ON_DISK,
    OUTPUTS,
    RECORDED_MS,
    WITHOUT_DELETIONS,
    history,
    open_at,
    results,
    started,
    write,
)
from tests.live.support import caught_up

RECORDINGS = sorted(Path(__file__).with_name("older_versions").glob("*.tar.gz"))
HOUR_MS = 3_600_000


class Outcome(NamedTuple):
    """``results`` are the records of each output, ``restored`` the changelogs of which records were restored."""

    results: dict[str, list[Any]]
    restored: set[str]
    snapshots_used: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The results of a run that has all input at its start."""
    log, clock = open_at(tmp_path_factory.mktemp("undisturbed"), RECORDED_MS)
    with closing(log):
        log.create(*INPUTS, *OUTPUTS)
        write(log, history())
        with started(log, clock):
            return results(log)


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The files of an older version."""
    with tarfile.open(request.param) as archive:
        # Python 3.11 has the argument ``filter`` only since 3.11.4; this is the same.
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(tmp_path)
    return tmp_path


def go_on(files: Path, now_ms: int) -> Outcome:
    """Have a client of this version go on with the files, and process the second half of the input."""
    log, clock = open_at(files, now_ms)
    with closing(log), started(log, clock) as (streams, listener):
        write(log, history()[HALF:])
        caught_up(streams)
        restored = {changelog for changelog, records in listener.ended.items() if records}
        assert listener.ended.keys() == {*ON_DISK, IN_MEMORY}
        return Outcome(results(log), restored, streams.metrics.total(names.SNAPSHOTS_USED))


def test_there_is_a_recording_in_which_everything_waits_for_the_rest_of_the_input(
    files: Path, undisturbed: dict[str, list[Any]]
) -> None:
    log, _ = open_at(files, RECORDED_MS)
    with closing(log):
        for topic, before in results(log).items():
            assert 0 < len(before) < len(undisturbed[topic])
            assert before == undisturbed[topic][: len(before)]


def test_state_at_hand_is_used_and_only_stores_in_memory_are_restored(
    files: Path, undisturbed: dict[str, list[Any]]
) -> None:
    assert go_on(files, RECORDED_MS + HOUR_MS) == Outcome(undisturbed, {IN_MEMORY}, 0)


def test_a_snapshot_is_used_where_the_state_has_gone(files: Path, undisturbed: dict[str, list[Any]]) -> None:
    shutil.rmtree(files / "state")
    assert go_on(files, RECORDED_MS + HOUR_MS) == Outcome(undisturbed, {IN_MEMORY}, 1)


def test_changelogs_are_read_where_state_and_snapshots_have_gone(
    files: Path, undisturbed: dict[str, list[Any]]
) -> None:
    shutil.rmtree(files / "state")
    shutil.rmtree(files / "snapshots")
    assert go_on(files, RECORDED_MS + HOUR_MS) == Outcome(undisturbed, {*ON_DISK, IN_MEMORY}, 0)


def test_changelogs_are_read_where_the_state_is_older_than_they_keep_deletions(
    files: Path, undisturbed: dict[str, list[Any]]
) -> None:
    compacted = {*ON_DISK, IN_MEMORY} - WITHOUT_DELETIONS
    assert go_on(files, RECORDED_MS + 72 * HOUR_MS) == Outcome(undisturbed, compacted, 0)

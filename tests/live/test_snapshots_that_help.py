"""Snapshots help where local state is missing or damaged; where they do not fit, the changelog is used as ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pystreams.ids import TopicPartition
from pystreams.metrics import names
from tests.live.snapshot_kit import PARTITIONS, Input, client, offsets_of, snapshots_of_everything
from tests.live.support import Log, caught_up, eventually

pytestmark = pytest.mark.live


def lived(log: Log, state: str, snapshots: Path) -> Input:
    """An application has processed records, has left snapshots that lack nothing, and has ended."""
    written = Input(log)
    written.write(3_000)
    with client(log, state, snapshots) as (streams, _):
        caught_up(streams)
        snapshots_of_everything(written, snapshots)
    return written


def begins(log: Log, written: Input, state: str, snapshots: Path) -> tuple[int, int]:
    """Start a client and let it process more; how many tasks began with a snapshot, and how many records were
    restored."""
    with client(log, state, snapshots) as (streams, restores):
        caught_up(streams)
        written.write(600)
        written.wait_until_counted()
        return int(streams.metrics.total(names.SNAPSHOTS_USED)), restores.records.total()


def test_a_restart_goes_on_with_its_own_state(log: Log) -> None:
    written = lived(log, "one", log.path / "snapshots")
    assert begins(log, written, "one", log.path / "snapshots") == (0, 0)


def test_an_empty_directory_begins_with_snapshots(log: Log) -> None:
    written = lived(log, "one", log.path / "snapshots")
    assert begins(log, written, "two", log.path / "snapshots") == (PARTITIONS, 0)


def test_damaged_local_state_is_replaced_by_a_snapshot(log: Log) -> None:
    written = lived(log, "one", log.path / "snapshots")
    for number in range(PARTITIONS):
        (log.path / "one" / "travels" / f"0_{number}" / "offsets.json").write_text("{")
    assert begins(log, written, "one", log.path / "snapshots") == (PARTITIONS, 0)


def test_damaged_snapshots_are_not_used(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    written = lived(log, "one", log.path / "snapshots")
    for file in (log.path / "snapshots").glob("travels/*/files/*"):
        file.write_bytes(file.read_bytes()[:-1])
    assert begins(log, written, "two", log.path / "snapshots") == (0, 3_000)
    assert "the file is damaged" in caplog.text


def test_snapshots_of_another_log_are_not_used(
    new_log: Callable[[str], Log], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshots = tmp_path / "snapshots"
    lived(new_log("first"), "one", snapshots)
    log = new_log("second")
    written = lived(log, "one", tmp_path / "elsewhere")
    assert begins(log, written, "two", snapshots) == (0, 3_000)
    assert caplog.text.count("another log, or it is from before a hand-over") >= PARTITIONS


def test_snapshots_from_before_the_beginning_of_their_changelog_are_not_used(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    written = lived(log, "one", log.path / "snapshots")
    changelogs = [TopicPartition("travels-counts-changelog", p) for p in range(PARTITIONS)]
    with client(log, "one", log.path / "snapshots") as (streams, _):
        caught_up(streams)
        written.write(600)
        written.wait_until_counted()
    # What follows the snapshots has gone; nobody can restore everything any more.
    ends = log.admin.end_offsets(changelogs)
    log.admin.delete_records({p: end - 10 for p, end in ends.items()}).wait()
    for folder in (log.path / "snapshots").glob("travels/*"):
        for later in sorted(folder.glob("snapshot-*.json"))[1:]:
            later.unlink()
    taken = offsets_of(log.path / "snapshots")
    assert all(taken[p.partition] < end - 10 for p, end in ends.items())
    with client(log, "two", log.path / "snapshots") as (streams, restores):
        caught_up(streams)
        assert streams.metrics.total(names.SNAPSHOTS_USED) == 0
        assert restores.records.total() == 10 * PARTITIONS
    assert "which holds offsets" in caplog.text


def test_a_standby_begins_with_a_snapshot(log: Log) -> None:
    written = Input(log)
    snapshots = log.path / "snapshots"
    written.write(3_000)
    with client(log, "one", snapshots, num_standby_replicas=1) as (one, _):
        caught_up(one)
        snapshots_of_everything(written, snapshots)
        with client(log, "two", snapshots, num_standby_replicas=1) as (two, _):
            eventually(
                lambda: two.metrics.total(names.SNAPSHOTS_USED) == PARTITIONS,
                "both tasks begin with snapshots",
            )
            written.write(600)
            written.wait_until_counted()
            eventually(
                lambda: {standby.lag for c in (one, two) for standby in c.progress().standbys} == {0},
                "standbys that lack nothing",
            )

"""Two processes that take the same task for their own do not damage each other's snapshots."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.reading import missing_files
from pystreams.state.snapshots.writing import SnapshotWriter
from tests.examples import examples
from tests.unit.state.snapshots.machine_kit import OF_TASK, Machines, content_of, never
from tests.unit.state.state_kit import Task, key_value


def test_the_snapshot_with_the_highest_offset_comes_first_whenever_it_was_written(tmp_path: Path) -> None:
    with Machines(tmp_path, key_value("items")) as machines:
        machines.task["items"].put("a", "1")
        machines.commit()
        frozen, stale = machines.checkpoint(), machines.manifest("frozen")
        machines.task["items"].put("a", "2")
        machines.commit()
        machines.take(owner="new")
        # The former owner wakes up and writes what it had.
        SnapshotWriter(machines.folder, 2, never).write(frozen, stale)
        assert [manifest.owner for manifest in machines.snapshots()] == ["new", "frozen"]
        machines.move(machines.snapshots()[0])
        assert content_of(machines.task) == {"items": [("a", "2")]}


@examples(10, suppress_health_check=[HealthCheck.too_slow])
@given(turns=st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=12))
def test_whatever_both_do_every_manifest_finds_its_files(turns: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Machines(Path(folder), key_value("items")) as machines:
        writers = {owner: SnapshotWriter(machines.folder, 1, never) for owner in ("one", "two")}
        zombie = Task(key_value("items"), directory=Path(folder) / "zombie" / "0_0", cache_bytes=0)
        mine = machines.task
        with zombie:
            for number, owner in enumerate(turns):
                machines.task = mine if owner == "one" else zombie
                machines.task["items"].put(f"{owner}-{number}", "x" * 500)
                machines.task.state.flush_caches()
                machines.task.state.commit({"items": number + 1})
                machines.take(writers[owner], owner)
                for manifest in machines.snapshots():
                    assert not missing_files(machines.folder, OF_TASK, manifest)
        machines.task = mine


def test_what_the_other_deletes_while_a_snapshot_is_written_is_written_again(tmp_path: Path) -> None:
    class Deleting(SnapshotFolder):
        """Loses all files just before the manifest is written."""

        def write(self, file: str, content: bytes) -> None:
            for name in self.names(f"{OF_TASK}/files"):
                self.remove(f"{OF_TASK}/files/{name}")
            super().write(file, content)

    with Machines(tmp_path, key_value("items")) as machines:
        machines.task["items"].put("a", "1")
        machines.commit()
        machines.take(SnapshotWriter(Deleting(str(tmp_path / "snapshots")), 2, never))
        machines.move(machines.snapshots()[0])
        assert content_of(machines.task) == {"items": [("a", "1")]}

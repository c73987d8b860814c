"""A snapshot copies only what the folder lacks, and old snapshots go with the files that nobody needs any more."""

from __future__ import annotations

import random
from pathlib import Path

from pystreams.state.snapshots.manifest import FILES_FOLDER
from pystreams.state.snapshots.writing import SnapshotWriter
from tests.unit.state.snapshots.machine_kit import OF_TASK, Machines, content_of, never
from tests.unit.state.state_kit import key_value

#: More than the files that describe a database have together.
LARGE = 40_000


def fill(machines: Machines, part: int) -> None:
    """Commit what makes a file of entries of its own: no two parts have the same bytes, nor have they the same keys."""
    source = random.Random(part)
    for number in range(LARGE // 1_000):
        machines.task["items"].put(f"{part}-{number}", source.randbytes(500).hex())
    machines.commit()


def stored(machines: Machines) -> set[str]:
    return set(machines.folder.names(f"{OF_TASK}/{FILES_FOLDER}"))


def test_unchanged_files_are_not_copied_again(tmp_path: Path) -> None:
    with Machines(tmp_path, key_value("items")) as machines:
        fill(machines, 1)
        first = machines.take()
        assert first.copied_bytes == first.size_bytes > LARGE
        fill(machines, 2)
        second = machines.take()
        assert second.size_bytes > first.size_bytes + LARGE
        assert LARGE < second.copied_bytes < second.size_bytes - LARGE


def test_another_machine_goes_on_with_the_files_that_are_there(tmp_path: Path) -> None:
    with Machines(tmp_path, key_value("items")) as machines:
        fill(machines, 1)
        machines.take()
        machines.move(machines.snapshots()[0])
        fill(machines, 2)
        other = SnapshotWriter(machines.folder, 2, never)
        second = machines.take(other, "two")
        assert LARGE < second.copied_bytes < second.size_bytes - LARGE


def test_as_many_snapshots_stay_as_are_wanted_and_each_is_whole(tmp_path: Path) -> None:
    with Machines(tmp_path, key_value("items"), kept=2) as machines:
        contents = []
        for part in range(5):
            fill(machines, part)
            machines.take()
            contents.append(content_of(machines.task))
        kept = machines.snapshots()
        assert [manifest.taken_ms for manifest in kept] == [5, 4]
        for manifest, content in zip(kept, reversed(contents), strict=False):
            directory = machines.fetch(manifest)
            machines.task.state.close()
            machines.changelogs["items"] = machines.changelogs["items"][: manifest.offsets]
            assert content_of(machines.open(directory)) == content


def test_files_of_deleted_snapshots_go_but_not_at_once(tmp_path: Path) -> None:
    with Machines(tmp_path, key_value("items"), kept=1) as machines:
        fill(machines, 1)
        machines.take()
        needed_once = stored(machines)
        fill(machines, 2)
        machines.take()
        needed = {file.digest for file in machines.snapshots()[0].files.values()}
        # Another owner of the task may be about to write a manifest that needs them.
        assert needed_once - needed
        assert needed_once <= stored(machines)
        machines.task["items"].put("a", "1")
        machines.commit()
        machines.take()
        assert not (needed_once - needed) & stored(machines)
        assert {file.digest for file in machines.snapshots()[0].files.values()} <= stored(machines)

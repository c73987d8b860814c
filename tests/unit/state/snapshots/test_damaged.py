"""A snapshot that is damaged, or was not finished, is never taken for a whole one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.manifest import FILES_FOLDER, Manifest, OtherFormatError
from pystreams.state.snapshots.reading import find_manifests, missing_files, read_manifest
from pystreams.state.snapshots.writing import SnapshotWriter
from tests.unit.state.snapshots.machine_kit import OF_TASK, Machines, content_of, never
from tests.unit.state.state_kit import key_value


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with Machines(tmp_path, key_value("items")) as machines:
        machines.task["items"].put("a", "1")
        machines.commit()
        machines.take()
        yield machines


def largest(manifest: Manifest) -> str:
    return max(manifest.files.values(), key=lambda file: file.size_bytes).digest


def test_a_changed_byte_in_a_file_is_noticed_and_the_next_snapshot_brings_the_file_again(
    machines: Machines,
) -> None:
    manifest = machines.snapshots()[0]
    file = machines.path / "snapshots" / OF_TASK / FILES_FOLDER / largest(manifest)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(StateCorruptedError, match="the file is damaged"):
        machines.fetch(manifest)
    machines.task["items"].put("b", "2")
    machines.commit()
    machines.take()
    for whole in machines.snapshots():
        assert not missing_files(machines.folder, OF_TASK, whole)
        machines.fetch(whole)


def test_a_missing_file_is_noticed(machines: Machines) -> None:
    manifest = machines.snapshots()[0]
    machines.folder.remove(f"{OF_TASK}/{FILES_FOLDER}/{largest(manifest)}")
    assert missing_files(machines.folder, OF_TASK, manifest)
    with pytest.raises(StateCorruptedError, match="the file is missing"):
        machines.fetch(manifest)


def test_any_part_of_a_manifest_alone_is_refused(machines: Machines) -> None:
    name = find_manifests(machines.folder, OF_TASK)[0]
    whole = machines.folder.read(f"{OF_TASK}/{name}")
    for length in range(len(whole)):
        with pytest.raises(StateCorruptedError, match="damaged, or was not finished"):
            Manifest.from_bytes(whole[:length], "there")


def test_a_manifest_with_another_offset_is_refused(machines: Machines) -> None:
    name = find_manifests(machines.folder, OF_TASK)[0]
    whole = machines.folder.read(f"{OF_TASK}/{name}")
    changed = whole.replace(b'"offset":1', b'"offset":2')
    assert changed != whole
    with pytest.raises(StateCorruptedError, match="damaged, or was not finished"):
        Manifest.from_bytes(changed, "there")


def test_a_manifest_of_another_format_is_distinguished_from_a_damaged_one(machines: Machines) -> None:
    name = find_manifests(machines.folder, OF_TASK)[0]
    whole = machines.folder.read(f"{OF_TASK}/{name}")
    with pytest.raises(OtherFormatError, match="a snapshot has format 2"):
        Manifest.from_bytes(whole.replace(b'"format":1', b'"format":2'), "there")


def test_a_database_that_is_not_as_of_the_manifests_offsets_is_refused(machines: Machines) -> None:
    checkpoint = machines.checkpoint()
    machines.task["items"].put("b", "2")
    machines.commit()
    machines.writer.write(checkpoint, machines.manifest())
    with pytest.raises(StateCorruptedError, match="does not hold what its manifest says"):
        machines.fetch(machines.snapshots()[0])


class Crashing(SnapshotFolder):
    """Breaks off in the middle of a file, after some whole ones."""

    def __init__(self, place: str, whole: int) -> None:
        super().__init__(place)
        self.whole = whole

    def put(self, source: Path, file: str, stopped: Callable[[], bool]) -> None:
        if self.whole == 0:
            content = source.read_bytes()
            self.write(file, content[: len(content) // 2])
            raise OSError("the connection is lost")
        self.whole -= 1
        super().put(source, file, stopped)


@pytest.mark.parametrize("whole", range(3))
def test_what_a_crash_in_the_middle_of_copying_leaves_is_not_relied_on(
    machines: Machines, whole: int
) -> None:
    machines.task["items"].put("b", "2" * 10_000)
    machines.commit()
    before = machines.snapshots()
    crashing = SnapshotWriter(Crashing(str(machines.path / "snapshots"), whole), 2, never)
    with pytest.raises(OSError, match="the connection is lost"):
        machines.take(crashing)
    left = machines.folder.names(f"{OF_TASK}/{FILES_FOLDER}").keys() - {
        file.digest for file in before[0].files.values()
    }
    assert len(left) == whole + 1
    # No manifest names what was left behind, be it whole or a part.
    assert machines.snapshots() == before
    for name, size_bytes in machines.folder.names(f"{OF_TASK}/{FILES_FOLDER}").items():
        if name in left:
            machines.folder.write(f"{OF_TASK}/{FILES_FOLDER}/{name}", b"x" * size_bytes)
    machines.take()
    found = machines.snapshots()
    assert len(found) == 2
    machines.move(found[0])
    assert content_of(machines.task) == {"items": [("a", "1"), ("b", "2" * 10_000)]}


def test_a_damaged_manifest_does_not_cost_other_snapshots_their_files(machines: Machines) -> None:
    name = find_manifests(machines.folder, OF_TASK)[0]
    machines.folder.write(f"{OF_TASK}/{name}", b"{")
    for value in "234":
        machines.task["items"].put("a", value)
        machines.commit()
        machines.take()
    for manifest in machines.snapshots():
        assert not missing_files(machines.folder, OF_TASK, manifest)
    with pytest.raises(FileNotFoundError):
        read_manifest(machines.folder, OF_TASK, name)


def test_a_snapshot_of_another_version_keeps_its_files(machines: Machines) -> None:
    (name,), (other,) = find_manifests(machines.folder, OF_TASK), machines.snapshots()
    file = f"{OF_TASK}/{name}"
    machines.folder.write(file, machines.folder.read(file).replace(b'"format":1', b'"format":2'))
    writer = SnapshotWriter(machines.folder, 10, never)
    for value in "2345":
        machines.task["items"].put("a", value)
        machines.commit()
        machines.take(writer)
    assert not missing_files(machines.folder, OF_TASK, other)

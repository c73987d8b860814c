"""A snapshot that is damaged, or was not finished, is never taken for a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.state.snapshots.folder import StoppedError
from pystreams.state.snapshots.manifest import FILES_FOLDER, Manifest, OtherFormatError
from pystreams.state.snapshots.reading import find_manifests, missing_files, read_manifest
from pystreams.state.snapshots.writing import SnapshotWriter
from tests.unit.state.snapshots.machine_kit import OF_TASK, Machines, content_of
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


def test_a_manifest_of_another_format_is_told_apart_from_a_damaged_one(machines: Machines) -> None:
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


@pytest.mark.parametrize("files", range(4))
def test_what_a_crash_in_the_middle_of_copying_leaves_is_not_relied_on(
    machines: Machines, files: int
) -> None:
    machines.task["items"].put("b", "2" * 10_000)
    machines.commit()
    before, left = machines.snapshots(), files

    def stopped() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    with pytest.raises(StoppedError):
        machines.take(SnapshotWriter(machines.folder, 2, stopped))
    # No manifest names what was left behind, be it whole or a part.
    assert machines.snapshots() == before
    for name, size_bytes in machines.folder.names(f"{OF_TASK}/{FILES_FOLDER}").items():
        if name not in {file.digest for file in before[0].files.values()}:
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

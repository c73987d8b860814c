"""Of a manifest's files the newest whole one counts; who is not the last to have written one writes no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.staging.manifest_files import LocalFolder, ManifestFiles
from pystreams.errors import StateError


def manifest(records: int) -> Manifest:
    return Manifest("a", "f", 5, records, 7, (), {"in": 2}, backfill_id="id")


class Memory:
    """A folder whose files appear before they are whole, as those of HDFS do."""

    url = "memory:/"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        #: The next file is cut off there, and its writer dies.
        self.dies_at: int | None = None
        #: Somebody else's file, which appears between the look for it and the making of ours.
        self.overtaking: dict[str, bytes] = {}

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def create(self, name: str, content: bytes) -> None:
        self.files.update(self.overtaking)
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = content[: self.dies_at]
        if self.dies_at is not None:
            raise KeyboardInterrupt

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> LocalFolder | Memory:
    return LocalFolder(tmp_path / "staging") if request.param == "local" else Memory()


def test_the_last_one_written_is_read(folder: LocalFolder | Memory) -> None:
    files = ManifestFiles(folder)
    assert files.read() is None
    for records in range(1, 12):
        files.write(manifest(records))
        assert ManifestFiles(folder).read() == manifest(records)
    assert len(folder.names()) == 11
    files.delete_older()
    assert folder.names() == ["manifest-00011.json"]
    assert ManifestFiles(folder).read() == manifest(11)


def test_a_file_that_was_cut_off_anywhere_does_not_count() -> None:
    whole = len(manifest(2).to_json().encode())
    for cut in range(whole):
        folder = Memory()
        files = ManifestFiles(folder)
        files.write(manifest(1))
        folder.dies_at = cut
        with pytest.raises(KeyboardInterrupt):
            files.write(manifest(2))
        folder.dies_at = None
        later = ManifestFiles(folder)
        assert later.read() == manifest(1)
        later.write(manifest(3))
        assert ManifestFiles(folder).read() == manifest(3)


def test_who_was_overtaken_writes_nothing_more(folder: LocalFolder | Memory) -> None:
    first, second = ManifestFiles(folder), ManifestFiles(folder)
    first.write(manifest(1))
    assert second.read() == manifest(1)
    second.require_own()
    second.write(manifest(2))
    for step in (first.require_own, lambda: first.write(manifest(3))):
        with pytest.raises(StateError, match="another process continues") as raised:
            step()
        assert "manifest-00002.json" in raised.value.why
    assert second.read() == manifest(2)


def test_of_two_that_write_at_the_same_moment_one_fails() -> None:
    folder = Memory()
    files = ManifestFiles(folder)
    other = replace(manifest(9), backfill_id="other")
    folder.overtaking = {"manifest-00001.json": other.to_json().encode()}
    with pytest.raises(StateError, match="another process continues"):
        files.write(manifest(1))
    assert files.read() == other


def test_a_manifest_that_was_deleted_is_missed(folder: LocalFolder | Memory) -> None:
    files = ManifestFiles(folder)
    files.write(manifest(1))
    folder.delete("manifest-00001.json")
    with pytest.raises(StateError, match="another process") as raised:
        files.write(manifest(2))
    assert "was deleted" in raised.value.why

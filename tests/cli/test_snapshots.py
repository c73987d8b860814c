"""``pystreams snapshots`` lists the snapshots in a folder, and finds damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.state.snapshots.folder import SnapshotFolder
from tests.unit.state.snapshots.machine_kit import OF_TASK, Machines
from tests.unit.state.state_kit import key_value


@pytest.fixture
def files(folder: Path) -> list[Path]:
    """The files of the snapshots of a task, which are below ``snapshots``."""
    with Machines(folder, key_value("items")) as machines:
        for value in "12":
            machines.task["items"].put("a", value)
            machines.commit()
            machines.take()
        sizes = [manifest.size_bytes for manifest in machines.snapshots()]
    assert len(sizes) == 2
    return sorted((folder / "snapshots" / OF_TASK / "files").iterdir(), key=lambda path: path.stat().st_size)


def test_it_lists_what_is_there_the_last_one_first(pystreams, files):
    for options, state in (([], "whole"), (["--verify"], "verified")):
        listed = pystreams("snapshots", "snapshots", *options)
        assert listed.code == 0
        rows = [line.split("\t") for line in listed.lines]
        assert [(row[0], row[1], row[3], row[5]) for row in rows] == [
            ("shop", "0_0", "items 2", state),
            ("shop", "0_0", "items 1", state),
        ]
        assert all(row[4].endswith(" bytes") for row in rows)


def test_a_missing_file_is_found_at_once(pystreams, files):
    files[-1].unlink()
    listed = pystreams("snapshots", "snapshots")
    assert listed.code == 1
    assert "damaged: " in listed.out


def test_a_changed_file_is_found_when_it_is_read(pystreams, files):
    content = bytearray(files[-1].read_bytes())
    content[0] ^= 1
    files[-1].write_bytes(content)
    assert pystreams("snapshots", "snapshots").code == 0
    listed = pystreams("snapshots", "snapshots", "--verify")
    assert listed.code == 1
    assert "damaged: " in listed.out


def test_a_damaged_manifest_is_a_row_of_its_own(pystreams, files, folder):
    manifest = max((folder / "snapshots" / OF_TASK).glob("snapshot-*.json"))
    manifest.write_bytes(manifest.read_bytes()[:-3])
    listed = pystreams("snapshots", "snapshots")
    assert listed.code == 1
    assert "the manifest of a snapshot is damaged, or was not finished" in listed.lines[0]
    assert listed.lines[1].endswith("whole")


def test_a_folder_without_any_is_no_mistake(pystreams, folder):
    listed = pystreams("snapshots", "nowhere")
    assert (listed.code, listed.out) == (0, "")
    assert "No snapshots in nowhere." in listed.err


def test_a_place_that_cannot_be_read_is_named(pystreams, files, monkeypatch):
    def denied(*_: object) -> None:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(SnapshotFolder, "folders", denied)
    refused = pystreams("snapshots", "snapshots")
    assert refused.code == 1
    assert "the snapshots cannot be read" in refused.err
    assert "RuntimeError: no credentials" in refused.err
    assert "line:" not in refused.err, "the lines of a library help nobody"


def test_an_unknown_file_system_is_named(pystreams, folder):
    refused = pystreams("snapshots", "carrier-pigeon://roof")
    assert refused.code == 2
    assert "carrier-pigeon" in refused.err
    assert "line:" not in refused.err

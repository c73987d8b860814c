"""Snapshots lie in a folder of this machine, or wherever fsspec reaches."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from pystreams.errors import ConfigError
from pystreams.state.snapshots.folder import SnapshotFolder
from tests.unit.state.snapshots.machine_kit import Machines, content_of
from tests.unit.state.state_kit import key_value


@pytest.mark.parametrize("place", ["{path}/deep/folder", "file://{path}/folder", "memory://{uuid}/snapshots"])
def test_a_snapshot_is_written_and_read(place: str, tmp_path: Path) -> None:
    place = place.format(path=tmp_path, uuid=uuid4())
    with Machines(tmp_path, key_value("items"), place=place, kept=1) as machines:
        for value in "123":
            machines.task["items"].put("a", value)
            machines.commit()
            machines.take()
        assert len(machines.snapshots()) == 1
        assert machines.folder.folders("shop") == ["0_0"]
        machines.move(machines.snapshots()[0])
        assert content_of(machines.task) == {"items": [("a", "3")]}
        assert machines.restored == 0


def test_an_empty_folder_has_no_snapshots(tmp_path: Path) -> None:
    for place in (str(tmp_path / "nothing"), f"memory://{uuid4()}"):
        folder = SnapshotFolder(place)
        assert folder.names("shop/0_0") == {}
        assert folder.folders("shop") == []


def test_an_unknown_file_system_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError) as raised:
        SnapshotFolder("carrier-pigeon://roof/snapshots")
    assert raised.value.what == "state_snapshot_dir is not on a file system that can be reached"
    assert raised.value.where == "carrier-pigeon://roof/snapshots"
    assert "carrier-pigeon" in raised.value.why
    assert "s3fs" in raised.value.hint

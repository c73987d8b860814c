"""Tasks take the local disks of a Spark worker in turn."""

from __future__ import annotations

import pytest

from pystreams.backfill.local_disks import local_folder


def test_tasks_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk1/spark,,/disk2/spark")
    assert [local_folder(task) for task in range(4)] == ["/disk1/spark", "/disk2/spark"] * 2


def test_elsewhere_the_machine_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert local_folder(3) is None

"""A log of one's own, in an empty folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.log import Log, open_log
from tests.environment import without


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and no setting in the environment."""
    without(monkeypatch, "PYSTREAMS_")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    with open_log() as log:
        yield log

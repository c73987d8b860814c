"""A log of one's own, in an empty folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.log import Log, open_log


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and no setting in the environment."""
    for variable in os.environ:
        if variable.startswith("PYSTREAMS_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    with open_log() as log:
        yield log

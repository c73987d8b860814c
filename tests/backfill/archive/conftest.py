"""Places for archives in tables, of each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pystreams.backfill.archive import merging
from tests.backfill.archive.kit import FILES_MIN
from tests.backfill.archive.lakes import KINDS, Lake


@pytest.fixture
def few_files_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive merges its small files from ``kit.FILES_MIN`` on."""
    monkeypatch.setattr(merging, "FILES_MIN", FILES_MIN)


@pytest.fixture(params=KINDS)
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Lake]:
    return lambda name: KINDS[request.param](tmp_path / name)


@pytest.fixture
def lake(new: Callable[[str], Lake]) -> Lake:
    return new("lake")

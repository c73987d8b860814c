"""Places for archives in tables, of each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backfill.archive.lakes import KINDS, Lake


@pytest.fixture(params=KINDS)
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Lake]:
    return lambda name: KINDS[request.param](tmp_path / name)


@pytest.fixture
def lake(new: Callable[[str], Lake]) -> Lake:
    return new("lake")

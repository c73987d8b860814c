"""An embedded log of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.support import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A fresh log; everything that was opened through it is closed at the end."""
    log = Log(tmp_path)
    yield log
    log.close()

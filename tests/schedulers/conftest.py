"""The folder of the page about nights, for a real scheduler; tests skip where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schedulers.environments import why_not
from tests.schedulers.nights import Nights


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    found = Nights(tmp_path)
    found.begin()
    return found

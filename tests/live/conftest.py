"""A log of its own for each test: the embedded one, and Kafka as well where a test is marked ``both_logs``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.live.support import Log, chosen_log


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    with chosen_log(request, tmp_path) as log:
        yield log


@pytest.fixture
def new_log(tmp_path: Path) -> Iterator[Callable[[str], Log]]:
    """Makes logs by name; everything that was opened through them is closed at the end."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(closing(Log(tmp_path / name)))

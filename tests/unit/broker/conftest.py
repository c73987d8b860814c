from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.clock import ManualClock

#: Some day in 2026, in ms.
NOW_MS = 1_790_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def broker(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path / "log.db", clock)
    yield broker
    broker.close()

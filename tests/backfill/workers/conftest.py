"""What tests of worker processes change: how these start, and which tasks are cut."""

from __future__ import annotations

from uuid import UUID

import pytest

from pystreams.backfill.compute import shares
from pystreams.backfill.workers import processes

#: Takes the place of a number that each backfill draws.
_ALL_BACKFILLS = UUID(int=0)


@pytest.fixture
def same_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backfills use the workers of the one before, which take a second each to start: modules do not change here."""
    monkeypatch.setattr(processes, "uuid4", lambda: _ALL_BACKFILLS)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks with a thousand records are cut."""
    monkeypatch.setattr(shares, "CUT_RECORDS", 1_000)

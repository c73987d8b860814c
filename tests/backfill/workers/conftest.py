"""Worker processes for tests that do not check how they start."""

from __future__ import annotations

from uuid import UUID

import pytest

from pystreams.backfill.workers import processes

#: Takes the place of a number that each backfill draws.
_ALL_BACKFILLS = UUID(int=0)


@pytest.fixture
def same_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backfills use the workers of the one before, which take a second each to start: modules do not change here."""
    monkeypatch.setattr(processes, "uuid4", lambda: _ALL_BACKFILLS)

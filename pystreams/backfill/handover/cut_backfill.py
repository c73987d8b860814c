"""The interface of a backfill for the checks of a hand-over."""

from __future__ import annotations

from typing import Protocol

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.plan.slices import BackfillPlan


class CutBackfill(Protocol):
    """A backfill that was planned and cut, computed or not: ``Planned``, ``BackfillResult``."""

    @property
    def loaded(self) -> LoadedApplication: ...

    @property
    def plan(self) -> BackfillPlan: ...

    @property
    def manifest(self) -> Manifest: ...

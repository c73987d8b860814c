"""Every moment that a process can be killed at is a function of the product: no kill loses its aim to a new name."""

from __future__ import annotations

import importlib
import operator

import pytest

from tests.chaos import worker as chaos_worker
from tests.kafka.backfill import backfill_driver
from tests.kafka.kills import worker
from tests.kills import aim

POINTS = {
    (program.__name__, name): point
    for program in (aim, worker, chaos_worker, backfill_driver)
    for name, point in program.POINTS.items()
}


@pytest.mark.parametrize("point", POINTS.values(), ids=["-".join(place) for place in POINTS])
def test_a_point_names_a_function(point: aim.Point):
    assert callable(operator.attrgetter(point.path)(importlib.import_module(point.module)))

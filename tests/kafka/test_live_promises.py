"""What the live tests promise on the embedded log holds on Kafka, test by test: caches, assignment, intake, order."""

# ruff: noqa: F403 - the tests of these modules are the tests of this one
from __future__ import annotations

import pytest

from tests.kafka.support import Cluster
from tests.live.test_assignment import *
from tests.live.test_bounded_intake import *
from tests.live.test_cache_eviction import *
from tests.live.test_latest import *
from tests.live.test_two_stages import *
from tests.live.test_wall_clock import *
from tests.live.test_write_back_cache import *


@pytest.fixture
def log(cluster: Cluster) -> Cluster:
    return cluster

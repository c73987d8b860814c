"""What the live tests promise on the embedded log holds on Kafka, test by test: assignment, intake, order, time.

The caches are in test_worked_examples.py: what is sent without waiting for a commit is in Kafka's log at once.
"""

# ruff: noqa: F401, F403 - the tests of these modules are the tests of this one
from __future__ import annotations

import pytest

from tests.kafka.support import Cluster
from tests.live.test_assignment import *
from tests.live.test_bounded_intake import *
from tests.live.test_latest import *
from tests.live.test_two_stages import *
from tests.live.test_wall_clock import *
from tests.live.test_write_back_cache import sums_of, test_a_requested_commit_does_not_wait_for_the_interval


@pytest.fixture
def log(cluster: Cluster) -> Cluster:
    return cluster

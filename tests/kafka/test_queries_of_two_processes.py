"""On Kafka, too, a process that is asked for a key of another one names who has it: the key is not absent."""

# ruff: noqa: F401 - the tests of that module are the tests of this one
from __future__ import annotations

import pytest

from tests.kafka.support import Cluster
from tests.live.test_queries import (
    test_a_key_of_another_process_is_never_absent_and_its_owner_is_named,
    test_where_others_have_spread_the_keys_a_missing_one_may_be_anywhere_until_somebody_says_how,
)


@pytest.fixture
def log(cluster: Cluster) -> Cluster:
    return cluster

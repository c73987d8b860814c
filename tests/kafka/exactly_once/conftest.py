"""Word count in processes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.kafka.exactly_once.word_counts import WordCounts
from tests.kafka.support import Cluster


@pytest.fixture
def words(cluster: Cluster) -> Iterator[WordCounts]:
    """Topics of word count, with four partitions; processes that are left at the end are killed."""
    words = WordCounts(cluster, seed=random.randrange(1_000_000))
    yield words
    words.kill_all()

"""Exactly once, a process that was killed goes on with the state on its disk: only what its store lacks is restored.
(Java deletes all of it.)"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pystreams import App
from tests.kafka.exactly_once.word_counts import APPLICATION, SETTINGS, WordCounts
from tests.kafka.support import Cluster
from tests.live.restore_kit import with_listener
from tests.live.support import eventually

pytestmark = pytest.mark.slow

CHANGELOG = "wordcount-counts-changelog"


def word_count(cluster: Cluster) -> App:
    """``apps.wordcount`` in this process."""
    app = cluster.app(APPLICATION, **SETTINGS)
    words = app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word)
    words.count(name="counts").to_stream().to("word-counts")
    return app


def changes(cluster: Cluster) -> int:
    return sum(cluster.admin.end_offsets(cluster.partitions(CHANGELOG)).values())


@pytest.fixture
def words(cluster: Cluster) -> Iterator[WordCounts]:
    words = WordCounts(cluster, seed=11)
    yield words
    words.kill_all()


def test_after_kill_9_only_what_the_store_lacks_is_restored(cluster: Cluster, words: WordCounts):
    words.write(1_000)
    process = words.start("state")
    eventually(lambda: words.members() == 1, "it has joined")
    words.done()
    in_the_store = changes(cluster)
    assert in_the_store > 4_000
    words.write(500)
    eventually(lambda: changes(cluster) > in_the_store + 200, "it is at work")
    process.kill()
    process.wait()
    cluster.remove_members(APPLICATION)
    cluster.broker = cluster.broker_with(exactly_once=True)
    listener = with_listener(cluster, word_count(cluster))
    assert sum(listener.ended.values()) <= changes(cluster) - in_the_store
    words.done()
    words.check()


def test_a_process_that_is_killed_again_and_again_while_it_comes_back_goes_on(
    cluster: Cluster, words: WordCounts
):
    """Each time with an open transaction or in the middle of a restore, whatever it has just come to."""
    words.write(300)
    for _ in range(3):
        process = words.start("state")
        eventually(lambda: words.members() == 1, "it has joined")
        words.write(100)
        process.kill()
        process.wait()
        cluster.remove_members(APPLICATION)
    words.start("state")
    words.done()
    words.stop_all()
    words.check()

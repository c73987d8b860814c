"""Exactly once on Kafka: processes that share the work, end and are killed, and every count is written once."""

from __future__ import annotations

import pytest

from tests.kafka.exactly_once.word_counts import APPLICATION, WordCounts
from tests.live.support import eventually


def test_two_processes_share_the_tasks_and_one_takes_over_when_the_other_stops(words: WordCounts):
    first = words.start("one")
    words.start("two")
    eventually(lambda: words.members() == 2, "two members")
    words.write(300)
    words.done()
    words.check()
    first.terminate()
    assert first.wait(30) == 0
    words.write(300)
    words.done()
    words.check()
    words.stop_all()
    words.check()


@pytest.mark.slow
def test_kill_9_doubles_nothing_and_loses_nothing(words: WordCounts):
    names = ["one", "two"]
    running = [words.start(name) for name in names]
    eventually(lambda: words.members() == 2, "two members")
    for _ in range(3):
        before = words.cluster.committed(APPLICATION)
        words.write(1_000)
        eventually(lambda before=before: words.cluster.committed(APPLICATION) != before, "a commit")
        words.write_for(words.choose.uniform(0, 0.5))
        victim = words.choose.randrange(2)
        running[victim].kill()
        running[victim].wait()
        running[victim] = words.start(names[victim])
    words.done()
    words.stop_all()
    words.check()

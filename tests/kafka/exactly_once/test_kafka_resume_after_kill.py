"""When a process is killed and nobody sees it die, all partitions go on within two seconds after its session, whether
it had a transaction open or not."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.resuming import promptly
from tests.live.support import eventually

pytestmark = pytest.mark.slow

SESSION_TIMEOUT_S = 6
AFTER_SESSION_S = 2

SETTINGS = {
    "session_timeout_ms": 1000 * SESSION_TIMEOUT_S,
    # Only who fences can have ended a transaction before that.
    "transaction_timeout_ms": 600_000,
}


def open_transactions(words: WordCounts) -> bool:
    partitions = words.cluster.partitions(READ[1])
    admin = words.cluster.admin
    return admin.end_offsets(partitions) != admin.stable_end_offsets(partitions)


def any_is_committed(words: WordCounts) -> bool:
    """Whether all of some partition is processed and committed."""
    committed = words.cluster.admin.group_offsets(APPLICATION, stable=False)
    ends = words.cluster.admin.end_offsets(words.cluster.partitions(READ[0]))
    return any(p in committed and committed[p].offset == end for p, end in ends.items())


def owners(words: WordCounts) -> int:
    """How many members have partitions."""
    described = words.cluster.broker._client.describe_consumer_groups([APPLICATION])[APPLICATION].result()
    return len([member for member in described.members if member.assignment.topic_partitions])


def test_all_partitions_go_on_soon_after_the_session(words: WordCounts):
    survivor = words.start("one", **SETTINGS, commit_interval_ms=100)
    eventually(lambda: words.members() == 1, "one member")

    def kill(commits_every_ms: int) -> float:
        """Kill a second process; how many seconds after its session all partitions go on."""
        victim = words.start("two", **SETTINGS, commit_interval_ms=commits_every_ms)
        eventually(lambda: words.members() == 2 and owners(words) == 2, "two members with partitions")
        words.write(400)
        if commits_every_ms == 100:
            words.done()
            assert not open_transactions(words)
        else:
            # The survivor has committed all of its own: what is open then is the victim's.
            eventually(lambda: any_is_committed(words) and open_transactions(words), "an open transaction")
        victim.kill()
        victim.wait()
        killed = time.monotonic()
        words.write(100)
        words.done()
        after_s = time.monotonic() - killed - SESSION_TIMEOUT_S
        assert after_s > -2, "somebody has seen it die"
        return after_s

    # All is committed, or a transaction is open.
    for commits_every_ms in (100, 300_000):
        promptly(partial(kill, commits_every_ms), AFTER_SESSION_S, "the session")
    assert survivor.poll() is None
    words.stop_all()
    words.check()

"""With ``group_protocol="streams"`` the broker assigns the tasks, and everything else is as with the classic
protocol."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import pytest

from pystreams.ids import MemberName
from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.support import Cluster
from tests.live.support import eventually

pytestmark = pytest.mark.kafka

#: The group's settings are the broker's: those of the application have their defaults.
SETTINGS = {"group_protocol": "streams", "session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}


@pytest.fixture
def words(cluster: Cluster) -> Iterator[WordCounts]:
    words = WordCounts(cluster, seed=random.randrange(1_000_000))
    yield words
    words.kill_all()


def members_with_tasks(words: WordCounts) -> int:
    return len([m for m in words.cluster.streams_members(APPLICATION) if m.assignment.active_tasks])


def test_processes_share_the_tasks_who_leaves_gives_them_back_and_who_is_removed_joins_again(
    words: WordCounts,
):
    words.write(300)
    words.start("one", **SETTINGS)
    eventually(lambda: members_with_tasks(words) == 1)
    two = words.start("two", **SETTINGS)
    words.write(300)
    eventually(lambda: members_with_tasks(words) == 2)
    words.write(300)
    two.send_signal(signal.SIGTERM)
    two.wait(30)
    eventually(lambda: members_with_tasks(words) == 1)
    words.write(300)
    words.done()
    (member_id,) = words.cluster.admin.group_members(APPLICATION)
    words.cluster.admin.remove_members(APPLICATION, [MemberName(member_id, None)])
    words.write_for(0.5)
    words.done()
    words.stop_all()
    words.check()
    assert words.members() == 0
    assert "lost the membership" in words.printed()


def test_a_process_that_is_killed_is_replaced_and_every_count_is_written_once(words: WordCounts):
    one, _ = words.start("one", **SETTINGS), words.start("two", **SETTINGS)
    eventually(lambda: members_with_tasks(words) == 2)
    words.write_for(1.0)
    one.kill()
    one.wait()
    words.start("one", **SETTINGS)  # finds its notes, and removes the members that it was
    words.write_for(1.0)
    words.done()
    words.stop_all()
    words.check()


def test_a_process_that_was_frozen_for_longer_than_its_session_writes_nothing_twice(words: WordCounts):
    one, _ = words.start("one", **SETTINGS), words.start("two", **SETTINGS)
    eventually(lambda: members_with_tasks(words) == 2)
    words.write_for(1.0)
    one.send_signal(signal.SIGSTOP)
    eventually(lambda: words.members() == 1)
    words.write_for(1.0)
    one.send_signal(signal.SIGCONT)
    eventually(lambda: members_with_tasks(words) == 2)
    words.write_for(0.5)
    words.done()
    words.stop_all()
    words.check()


def test_an_application_goes_from_one_protocol_to_the_other_and_back(words: WordCounts):
    classic = {"group_protocol": "classic"}
    for settings in (classic, SETTINGS, classic):
        words.write(100)
        words.start("one", **settings)
        eventually(lambda: words.cluster.admin.describe_topics(READ).keys() == set(READ))
        words.done()
        words.stop_all()
    words.check()

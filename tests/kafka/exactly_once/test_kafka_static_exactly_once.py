"""Static members, exactly once: who is killed and comes back, on whatever machine, ends its own transaction. Nobody
else does, and every count is written once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka.exactly_once.word_counts import READ, WordCounts
from tests.live.support import eventually

pytestmark = pytest.mark.slow

#: No transaction of these tests ends by its time, and no member is removed because of its session.
PATIENT = {"transaction_timeout_ms": 600_000, "session_timeout_ms": 60_000, "commit_interval_ms": 500}


def start(words: WordCounts, directory: str, instance: str):
    settings: dict[str, Any] = {**PATIENT, "group_instance_id": instance}
    return words.start(directory, **settings)


def test_a_static_member_comes_back_with_an_empty_state_directory(words: WordCounts):
    a = start(words, "a", "a")
    start(words, "b", "b")
    eventually(lambda: words.members() == 2, "two members")
    eventually(lambda: READ[1] in words.cluster.admin.partition_counts(), "its topics are there")
    words.write(500)
    words.done()
    words.write_for(1)
    a.kill()
    a.wait()
    start(words, "empty", "a")
    words.write_for(1)
    words.done()
    words.stop_all()
    words.check()
    printed = words.printed()
    assert "ended the open transaction" not in printed
    assert "Others have ended the transaction" not in printed

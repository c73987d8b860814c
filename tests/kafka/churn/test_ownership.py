"""The judge of the churn: what counts as an overlap, and how offsets' history is read."""

from __future__ import annotations

import struct

from pystreams.ids import TopicPartition
from tests.kafka.churn.offsets import Commit, _decode, steps_backward
from tests.kafka.churn.ownership import History, Overlap, Span, overlaps, read_history


def history(owned: tuple[float, float], lived: tuple[float, float]) -> History:
    return History({"0_0": [Span(*owned)]}, [Span(*lived)])


def test_two_that_live_must_not_own_a_task_at_once():
    both = {"a": history((0, 10), (0, 20)), "b": history((8, 15), (0, 20))}
    assert overlaps(both, alive=True) == [Overlap("0_0", "a", "b", 2)]
    assert overlaps(both, alive=False) == [Overlap("0_0", "a", "b", 2)]


def test_who_was_not_heard_of_for_a_session_is_not_alive():
    both = {"a": history((0, 10), (0, 7)), "b": history((8, 15), (0, 20))}
    assert overlaps(both, alive=True) == []
    assert overlaps(both, alive=False) == [Overlap("0_0", "a", "b", 2)]


def test_a_journal_that_ends_in_the_middle_owns_until_its_process_was_seen_to_be_gone(tmp_path):
    journal = tmp_path / "journal"
    journal.write_text(
        '{"at": 1.0, "what": "open", "task": "0_0"}\n'
        '{"at": 2.0, "what": "alive", "since": 1.5, "until": 2.0}\n'
        '{"at": 3.0, "what": "close", "task": "0_0"}\n'
        '{"at": 4.0, "what": "alive", "since": 4.0, "until": 4.0}\n'
        '{"at": 5.0, "what": "open", "task": "0_0"}\n'
    )
    found = read_history(journal, ended=9.0, session_timeout_s=6.0)
    assert found.owned["0_0"] == [Span(1, 3), Span(5, 9)]
    assert found.lived == [Span(1.5, 10)]


def test_a_step_backward_is_found():
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    forward = [Commit(one, 3), Commit(other, 1), Commit(one, 3), Commit(one, 5)]
    assert steps_backward(forward) == []
    assert steps_backward([*forward, Commit(one, 4)]) == [(one, 5, 4)]
    assert steps_backward([*forward, Commit(one, None)]) == [(one, 5, -1)]


def test_commits_are_distinguished_from_the_groups_other_records():
    key = struct.pack(">hh1sh2si", 1, 1, b"g", 2, b"in", 7)
    value = struct.pack(">hq", 3, 42)
    assert _decode(key, value, "g") == Commit(TopicPartition("in", 7), 42)
    assert _decode(key, None, "g") == Commit(TopicPartition("in", 7), None)
    assert _decode(key, value, "other") is None
    assert _decode(struct.pack(">hh1s", 2, 1, b"g"), b"", "g") is None

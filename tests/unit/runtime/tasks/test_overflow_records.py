"""The records of what does not fit beside the offsets: the one that belongs to a commit is found, whatever was written
around it, and it is kept as long as a commit refers to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.engine.offset_metadata import encode_committed, merge_committed
from pystreams.engine.overflow_writer import OverflowTopics, OverflowWriter
from pystreams.errors import BrokerUnavailableError, StateError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.overflow_reading import read_overflow
from pystreams.runtime.tasks.purge import replaced
from tests.unit.runtime.tasks.log_kit import MemoryLog, MemoryProducer

IN = TopicPartition("in", 1)
#: More than fits.
STEPS = {f"py/step-{number * 7919}/stream_time": number**4 % 1_000_003 for number in range(2_000)}


class Owner:
    """An owner of task 3_1, as far as its commits are concerned; of another number in another program."""

    def __init__(self, log: Any, subtopology: int = 3) -> None:
        self.log = log
        self.producer = MemoryProducer(log)
        send = self.producer.send_to_changelog
        self.writer = OverflowWriter(
            "app", TaskId(subtopology, 1), 2, OverflowTopics(log), send, ManualClock()
        )
        references = merge_committed(log.offsets).overflow
        self.found = read_overflow(log, log, "app", references, ManualClock())
        self.writer.go_on(references)

    @property
    def numbers(self) -> Mapping[str, int]:
        return merge_committed(self.log.offsets).with_overflow(self.found).own

    def commit(self, offset: int, numbers: Mapping[str, int]) -> None:
        offsets = encode_committed({IN: offset}, {}, numbers, {}, self.writer)
        self.writer.after_commit(self.producer.commit(offsets, None))


def at_time(time_ms: int) -> dict[str, int]:
    return {name: time_ms + number for name, number in STEPS.items()}


@pytest.fixture(params=[True, False], ids=["transactional", "at least once"])
def log(request: pytest.FixtureRequest) -> MemoryLog:
    return MemoryLog(transactional=request.param)


def records(log: MemoryLog) -> int:
    return sum(len(lines) for lines in log.partitions.values())


def test_the_next_owner_has_the_numbers_of_the_last_commit(log: MemoryLog) -> None:
    owner = Owner(log)
    for time_ms in range(30):
        owner.commit(time_ms, at_time(time_ms))
        assert Owner(log).numbers == at_time(time_ms)
    assert log.calls["create_topics"] == 1


def test_what_was_written_for_a_commit_that_failed_is_not_read(log: MemoryLog) -> None:
    for time_ms in range(5):
        owner = Owner(log)
        owner.commit(time_ms, at_time(time_ms))
        log.faults["commit"] = 1
        with pytest.raises(BrokerUnavailableError):
            owner.commit(time_ms + 1, at_time(1_000 + time_ms))
        # It is killed now.
        assert Owner(log).numbers == at_time(time_ms)


def test_a_commit_that_failed_can_be_tried_again_with_other_numbers(log: MemoryLog) -> None:
    owner = Owner(log)
    log.faults["commit"] = 1
    with pytest.raises(BrokerUnavailableError):
        owner.commit(1, at_time(1))
    owner.commit(1, at_time(2))
    assert Owner(log).numbers == at_time(2)


def test_a_frozen_owner_that_wakes_up_disturbs_nobody() -> None:
    log = MemoryLog(transactional=False)
    frozen = Owner(log)
    frozen.commit(1, at_time(1))
    owner = Owner(log)
    log.faults["commit"] = 1
    with pytest.raises(BrokerUnavailableError):
        frozen.commit(2, at_time(77))
    owner.commit(2, at_time(2))
    log.faults["commit"] = 1
    with pytest.raises(BrokerUnavailableError):
        frozen.commit(3, at_time(78))
    assert Owner(log).numbers == at_time(2)


def test_numbers_that_have_not_changed_are_not_written_again(log: MemoryLog) -> None:
    owner = Owner(log)
    owner.commit(1, at_time(1))
    owner.commit(2, at_time(1))
    Owner(log).commit(3, at_time(1))
    assert records(log) == 1
    assert Owner(log).numbers == at_time(1)


def test_what_fits_again_needs_no_record(log: MemoryLog) -> None:
    owner = Owner(log)
    owner.commit(1, at_time(1))
    owner.commit(2, {"py/step/seen": 4})
    assert not merge_committed(log.offsets).overflow
    assert Owner(log).numbers == {"py/step/seen": 4}
    owner.commit(3, at_time(1))
    assert Owner(log).numbers == at_time(1)


def test_a_task_with_another_number_in_a_changed_program_finds_its_record(log: MemoryLog) -> None:
    Owner(log).commit(1, at_time(1))
    changed = Owner(log, 0)
    assert changed.numbers == at_time(1)
    changed.commit(2, at_time(2))
    assert log.topics.keys() == {
        "app-pystreams-overflow-3-2-changelog",
        "app-pystreams-overflow-0-2-changelog",
    }
    assert Owner(log, 0).numbers == at_time(2)


def deletable(log: Any, owner: Owner) -> Mapping[TopicPartition, int]:
    task: Any = SimpleNamespace(overflow=owner.writer)
    return replaced(log, "app")([task])


def test_only_what_no_commit_refers_to_is_deleted(log: MemoryLog) -> None:
    owner = Owner(log)
    assert deletable(log, owner) == {}
    for offset in range(4):
        owner.commit(offset, at_time(offset))
        assert deletable(log, owner) == {owner.writer.place: offset}
    # After a change of the program, another task still refers to an older record in this topic.
    before = log.offsets[IN]
    owner.commit(9, at_time(9))
    log.offsets[TopicPartition("other", 1)] = CommittedOffset(before.offset, before.metadata)
    assert deletable(log, owner) == {owner.writer.place: 3}


def test_a_record_that_is_gone_is_an_error_that_says_so(log: MemoryLog) -> None:
    Owner(log).commit(1, at_time(1))
    (place,) = log.partitions
    log.partitions[place].clear()
    with pytest.raises(StateError) as caught:
        Owner(log)
    assert str(caught.value) == (
        "what the steps of a task remember of their last commit is gone\n"
        "  where: app-pystreams-overflow-3-2-changelog-1, a record at offset 0 or later\n"
        "  why: the committed offsets refer to it, and offsets 0 to 0 do not hold it\n"
        "  next: without it closed windows would open again, so the application does not start: restore the topic, "
        "or reset the application (pystreams reset)"
    )
    log.topics.clear()
    with pytest.raises(StateError, match="the topic does not exist"):
        Owner(log)

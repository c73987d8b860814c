"""A coordinator that answers with old offsets, or with none, while it loads them has no work done twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.errors import BrokerUnavailableError, TaskMigratedError, TopicError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.task import TaskStatus
from tests.unit.runtime.tasks.log_kit import MemoryLog
from tests.unit.runtime.tasks.manager_kit import COUNTS_0, PLAIN, TASKS, World, happen, told

CREATED = TaskStatus.CREATED
OTHER = TopicPartition("other", 0)


@pytest.fixture(params=[True, False], ids=["transactional", "at-least-once"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A process that has processed records twice, and committed them twice."""
    world = told(
        tmp_path / "before",
        [
            ("assign", *TASKS),
            ("round",),
            *2 * [*(("feed", task, 4) for task in TASKS), ("work",), ("commit",)],
        ],
        transactional=request.param,
    )
    yield world
    world.close()


@pytest.fixture
def successor(before: World, tmp_path: Path) -> Iterator[World]:
    """Another process, which is about to take all tasks over."""
    before.manager.close(commit=True)
    world = World(tmp_path / "successor", log=before.log)
    world.fed, world.fed_plain = before.fed, before.fed_plain
    yield world
    world.close()


def old_offsets(log: MemoryLog) -> dict[TopicPartition, CommittedOffset]:
    """Those of half of the way."""
    return {p: CommittedOffset(at.offset // 2, at.metadata) for p, at in log.offsets.items()}


@pytest.mark.parametrize("has_some", [True, False])
def test_offsets_are_read_again_when_the_stores_are_restored(successor: World, has_some: bool) -> None:
    world = successor
    world.log.loading = [old_offsets(world.log) if has_some else {}]
    world.assign(*TASKS)
    world.round()
    assert not world.manager.running, "they were about to do the second half again"
    assert {task.status for task in world.tasks().values()} == {CREATED}
    happen(world, "round")
    assert world.manager.settled
    assert world.consumer.position(OTHER) == 8
    world.settle()
    world.check_results()


def test_only_tasks_whose_offsets_differ_begin_anew(successor: World) -> None:
    world = successor
    world.log.loading = [world.log.offsets | {OTHER: CommittedOffset(0)}]
    world.assign(*TASKS)
    world.round()
    assert world.status(PLAIN) is CREATED
    assert world.status(COUNTS_0) is TaskStatus.RUNNING


@pytest.mark.parametrize("before", [True], indirect=True)
def test_nothing_is_committed_that_began_at_an_old_offset(successor: World) -> None:
    world = successor
    world.log.loading = [old_offsets(world.log)] * 2  # until the tasks run
    world.assign(*TASKS)
    world.round()
    assert world.manager.settled
    world.work()
    with pytest.raises(TaskMigratedError, match="other offsets for a task"):
        world.manager.commit()
    world.lose()  # as the thread does then
    world.settle()
    world.check_results()


def test_a_process_waits_for_the_offsets_that_it_has_seen_before(before: World) -> None:
    """However long the coordinator takes: here until after the first commit."""
    before.log.topics |= {"in": 1, "other": 1}
    before.assign()
    before.log.loading = [old_offsets(before.log), {}, old_offsets(before.log)]
    before.pending = frozenset(TASKS)
    for _ in range(3):
        before.round()
        assert {task.status for task in before.tasks().values()} == {TaskStatus.OPENED}
    before.settle()
    before.check_results()


def test_offsets_that_were_deleted_with_their_topic_are_not_waited_for(before: World) -> None:
    before.assign()
    before.log.loading = [{}]
    with pytest.raises(TopicError, match="Topic 'other' was deleted"):
        before.manager.assign([OTHER])
    before.assigned = frozenset({PLAIN})


def test_the_error_says_which_offsets_are_old_and_why(before: World) -> None:
    before.assign()
    before.log.loading = [before.log.offsets | {OTHER: CommittedOffset(3)}]
    with pytest.raises(BrokerUnavailableError) as raised:
        before.manager.assign([OTHER])
    assert raised.value.where == "other-0"
    assert "older offsets" in str(raised.value)
    assert "set back by hand" in str(raised.value)
    before.assigned = frozenset({PLAIN})


def test_offsets_are_read_again_before_the_first_commit_only(before: World) -> None:
    asked = before.log.calls["committed"]
    before.feed(PLAIN, 4)
    before.work()
    before.commit()
    assert before.log.calls["committed"] == asked

"""Membership under churn: whatever members do and suffer, in whatever order, no partition has two holders whose commits
count, nothing that was committed is lost, and when it is quiet every partition has a holder."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.membership import EmbeddedMember
from pystreams.broker.port import Assigned, CommittedOffset, MemberAssignment, MemberInfo
from pystreams.clock import ManualClock
from pystreams.errors import TaskMigratedError
from pystreams.ids import TopicPartition
from tests.examples import examples
from tests.unit.broker.log_helpers import create, values

PARTITIONS = tuple(TopicPartition("t", number) for number in range(5))
SESSION_TIMEOUT_MS = 5_000


@dataclass
class Worker:
    """A thread of an application: it holds what it was given until it has given it up."""

    member: EmbeddedMember
    holds: set[TopicPartition] = field(default_factory=set)
    target: set[TopicPartition] | None = None
    killed: bool = False


class Churn(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def open(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(1_000)
        self.broker = EmbeddedBroker(
            Path(self.directory.name) / "log.db",
            self.clock,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=1_000,
        )
        create(self.broker, "t", len(PARTITIONS))
        create(self.broker, "out")
        self.producer = self.broker.producer("churn", "churn")
        self.workers: list[Worker] = []
        self.committed: dict[TopicPartition, int] = dict.fromkeys(PARTITIONS, 0)
        self.commits = 0

    def teardown(self) -> None:
        self.quiet_down()
        self.producer.close()
        self.broker.close()
        self.directory.cleanup()

    def assign(self, members: Sequence[MemberInfo]) -> Mapping[str, MemberAssignment]:
        """Anything goes: the port must be safe under every assignor."""
        given: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for partition in PARTITIONS:
            given[self.random.choice(members).member_id].append(partition)
        return {member_id: MemberAssignment(tuple(parts), b"") for member_id, parts in given.items()}

    def pick(self, index: int) -> Worker | None:
        alive = [worker for worker in self.workers if not worker.killed]
        return alive[index % len(alive)] if alive else None

    @rule()
    def join(self) -> None:
        if sum(not worker.killed for worker in self.workers) < 4:
            member = self.broker.member("w", "g", ["t"], lambda: b"", self.assign)
            self.workers.append(Worker(member))

    @rule(index=st.integers(0, 9))
    def poll(self, index: int) -> None:
        worker = self.pick(index)
        if worker is not None:
            self.poll_worker(worker)

    def poll_worker(self, worker: Worker) -> None:
        for event in worker.member.poll():
            if isinstance(event, Assigned):
                worker.target = set(event.partitions)
                for other in self.workers:
                    # Nobody is given what another one holds that could still commit it.
                    if other is not worker and other.holds & (worker.target - worker.holds):
                        assert not self.may_commit(other, other.holds & worker.target)
                worker.holds |= worker.target
            else:
                worker.holds, worker.target = set(), None

    @rule(index=st.integers(0, 9))
    def claim(self, index: int) -> None:
        worker = self.pick(index)
        if worker is not None and worker.target is not None:
            worker.holds &= worker.target
            worker.member.claim(worker.holds)

    @rule(index=st.integers(0, 9), zombie=st.booleans())
    def commit(self, index: int, zombie: bool) -> None:
        candidates = [worker for worker in self.workers if worker.holds and worker.killed == zombie]
        if candidates:
            worker = candidates[index % len(candidates)]
            self.may_commit(worker, worker.holds)

    def may_commit(self, worker: Worker, partitions: set[TopicPartition]) -> bool:
        """Commit the next offset of partitions, as a task does: from the one committed, as far as this worker may."""
        offsets = {partition: CommittedOffset(self.committed[partition] + 1) for partition in partitions}
        self.producer.send("out", 0, None, b"x", 1, ())
        try:
            self.producer.commit(offsets, worker.member)
        except TaskMigratedError:
            self.producer.abort()
            assert not self.is_member(worker), "a member may commit what it was given"
            return False
        self.commits += 1
        for partition in partitions:
            self.committed[partition] += 1
        holders = [other for other in self.workers if other is not worker and other.holds & partitions]
        assert all(not self.is_member(other) for other in holders)
        return True

    def is_member(self, worker: Worker) -> bool:
        admin = self.broker.admin()
        try:
            return worker.member.member_id in admin.group_members("g")
        finally:
            admin.close()

    @rule(index=st.integers(0, 9))
    def kill(self, index: int) -> None:
        worker = self.pick(index)
        if worker is not None:
            worker.killed = True
            if worker.member._lock is not None:
                worker.member._lock.release()

    @rule(index=st.integers(0, 9))
    def leave(self, index: int) -> None:
        worker = self.pick(index)
        if worker is not None:
            worker.member.close()
            self.workers.remove(worker)

    @rule(index=st.integers(0, 9))
    def rejoin(self, index: int) -> None:
        worker = self.pick(index)
        if worker is not None:
            worker.member.request_rejoin()

    @rule(duration_ms=st.sampled_from([10, 300, 1_500, 6_000]))
    def wait(self, duration_ms: int) -> None:
        self.clock.advance_ms(duration_ms)

    @invariant()
    def offsets_and_outputs_are_those_of_the_accepted_commits(self) -> None:
        admin = self.broker.admin()
        stored = {partition: committed.offset for partition, committed in admin.group_offsets("g").items()}
        assert stored == {partition: offset for partition, offset in self.committed.items() if offset}
        assert admin.end_offsets([TopicPartition("out", 0)]) == {TopicPartition("out", 0): self.commits}
        admin.close()

    def quiet_down(self) -> None:
        """Let the living go on undisturbed: everything finds exactly one holder, and none of them is a zombie."""
        alive = [worker for worker in self.workers if not worker.killed]
        for _ in range(8):
            self.clock.advance_ms(300)
            for worker in alive:
                self.poll_worker(worker)
                if worker.target is not None:
                    worker.holds &= worker.target
                    worker.member.claim(worker.holds)
        if alive:
            held = sorted(partition for worker in alive for partition in worker.holds)
            assert held == list(PARTITIONS)
        assert len(values(self.broker, TopicPartition("out", 0))) == self.commits
        for worker in self.workers:
            worker.member.close(leave=not worker.killed)


Churn.TestCase.settings = examples(15, stateful_step_count=40, suppress_health_check=list(HealthCheck))
test_membership_survives_churn = Churn.TestCase

"""Members come, go, are killed and are slow, for a while: never two that hold the same partition at once."""

from __future__ import annotations

import random
import threading
import time

import pytest

from pystreams.broker.port import CommittedOffset, Lost
from pystreams.errors import TaskMigratedError
from pystreams.ids import TopicPartition
from tests.broker.following import SESSION_TIMEOUT_MS, Follower, overlaps
from tests.kafka.support import Cluster
from tests.unit.broker.log_helpers import deal

pytestmark = pytest.mark.slow

PARTITIONS = 8
SECONDS = 12.0


class Worker:
    """A member in a thread of its own, that commits what it holds all the time."""

    def __init__(self, cluster: Cluster, name: str, seed: int, journal: list) -> None:
        member = cluster.broker.member(name, "g", ["t"], name.encode, deal("t", PARTITIONS))
        self.follower = Follower(name, member, journal)
        self.choose = random.Random(seed)
        self.leaves = True
        self.commits = self.refused = 0
        self.error: BaseException | None = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name)
        self.thread.start()

    def end(self, *, leave: bool) -> None:
        self.leaves = leave
        self.stop.set()
        self.thread.join(60)

    def _run(self) -> None:
        follower = self.follower
        try:
            while not self.stop.wait(0.01):
                follower.poll()
                if self.choose.random() < 0.02:
                    self.stop.wait(self.choose.uniform(0, SESSION_TIMEOUT_MS / 1000 / 2))  # at work
                if follower.held and follower.member.can_commit():
                    self._commit()
            # What ends without leaving has to be closed before the session is over: a killed process is.
            follower.close_all()
            follower.member.close(leave=self.leaves)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.error = error

    def _commit(self) -> None:
        now = time.time_ns()
        offsets = {
            TopicPartition("t", p): CommittedOffset(now, self.follower.name) for p in self.follower.held
        }
        try:
            self.follower.member.commit(offsets)
            self.commits += 1
        except TaskMigratedError:
            self.refused += 1
            self.follower.close_all()
            self.follower.member.claim(())


def test_no_two_members_hold_a_partition_however_they_come_and_go(cluster: Cluster):
    cluster.create("t", partitions=PARTITIONS)
    choose, journal = random.Random(7), []
    workers = [Worker(cluster, f"w{number}", number, journal) for number in range(3)]
    ended: list[Worker] = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(choose.uniform(0.3, 2.0))  # random moments are what this test is about
        if len(workers) > 2 and choose.random() < 0.5:
            worker = workers.pop(choose.randrange(len(workers)))
            worker.end(leave=choose.random() < 0.6)
            ended.append(worker)
        elif len(workers) < 5:
            number = len(workers) + len(ended)
            workers.append(Worker(cluster, f"w{number}", number, journal))
    for worker in workers:
        worker.end(leave=True)
    assert [worker.error for worker in ended + workers if worker.error] == []
    assert overlaps(journal) == []
    losses = [e for w in ended + workers for e in w.follower.events if isinstance(e, Lost)]
    commits = sum(worker.commits for worker in ended + workers)
    print(f"{len(ended + workers)} members, {len(journal)} changes, {commits} commits, {len(losses)} losses")
    assert commits > 50

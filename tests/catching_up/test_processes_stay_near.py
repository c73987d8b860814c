"""While an application catches up, its processes stay near to each other in time, even if one of them is slow: those
that are ahead pause. The results are those of the order of time."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.metrics import names
from pystreams.runtime.catching_up import group_watch, spread
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.pausing import Pausing
from pystreams.runtime.threads import rounds
from tests.broker.following import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.catching_up.comparing import compare
from tests.catching_up.programs import NAME, application
from tests.catching_up.reference import expected
from tests.catching_up.trials import BEGIN_MS, LEFT, OUT, Event, History, Rekey, Run, Trial, Windows
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually

pytestmark = [pytest.mark.live, pytest.mark.slow]

MINUTE, HOUR = 60_000, 3_600_000
PARTITIONS, EACH, HOURS = 4, 500, 48
#: What a record takes in the slow partition, and in another one. Without a limit the others are at the end when the
#: slow one is not halfway.
SLOW_S, FAST_S = 0.012, 0.002

#: What Kafka takes for a question on a machine that does nothing else, and a little more.
USUAL_S = 0.01


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """What takes seconds in a long history takes tenths of them here; on Kafka, where records take longer, two
    tenths."""
    often_s = 0.1 if "cluster" in request.fixturenames else 0.05
    monkeypatch.setattr(group_watch, "_OFTEN_S", often_s)
    monkeypatch.setattr(rounds, "_AWAITED_COMMIT_MS", 1_000 * often_s)
    monkeypatch.setattr(spread, "PACE_KNOWN_AFTER_MS", 500.0)


def orders() -> Trial:
    """Two days, behind two repartition topics: final counts of half an hour, and sums of these."""
    chance = random.Random(1)
    history: History = []
    for partition in range(PARTITIONS):
        times = sorted(BEGIN_MS + chance.randrange(HOURS * HOUR) for _ in range(EACH))
        history.append(
            [Event(at, f"a{partition}.{n % 3}", f"a{partition}.{n}") for n, at in enumerate(times)]
        )
    steps = [Rekey(7, 5, PARTITIONS), Windows("tumbling", 30 * MINUTE, 0, MINUTE, "close"), Rekey(3, 2, 3)]
    steps.append(Windows("tumbling", 2 * HOUR, 0, MINUTE, "close"))
    return Trial(1, history, [[] for _ in history], [[] for _ in history], steps, Run("embedded"))


def take_time(value: str, times: float) -> None:
    time.sleep(times * (SLOW_S if value.startswith("a0.") else FAST_S))


def take_turns() -> Callable[[str], None]:
    """As ``take_time``, but no load of the machine makes the partitions alike: a record of the slow one also waits
    until another partition has had three times as many. Not for long, because at first one client may have them all."""
    had: Counter[str] = Counter()
    changed = threading.Condition()

    def take(value: str) -> None:
        take_time(value, times=1)
        partition = value.split(".", maxsplit=1)[0]
        with changed:
            had[partition] += 1
            changed.notify_all()
            if partition == "a0":
                wanted = min(3 * had["a0"], EACH)
                changed.wait_for(lambda: any(had[f"a{n}"] >= wanted for n in range(1, PARTITIONS)), 1.0)

    return take


class Apart:
    """How far the partitions that are not done have been behind the furthest, by the commits."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ends = log.admin.end_offsets(log.partitions(LEFT))
        self.most_ms = 0

    def look(self) -> bool:
        """Whether all is done."""
        committed = self._log.committed(NAME)
        done = {p for p, end in self._ends.items() if p in committed and committed[p].offset >= end}
        times = {p: self._time(committed[p].metadata) for p in self._ends if p in committed}
        if behind := [times.get(p, BEGIN_MS) for p in self._ends.keys() - done]:
            self.most_ms = max(self.most_ms, max(times.values(), default=BEGIN_MS) - min(behind))
        return len(done) == PARTITIONS

    def _time(self, metadata: str) -> int:
        return OffsetMetadata.decode(metadata).partition_time


def catch_up(log: Log, take: Callable[[str], None]) -> tuple[int, bool]:
    """By two clients, which call ``take`` for each record. How far apart the partitions were at the most (ms), and
    whether a task was said to pause."""
    trial = orders()
    log.create(LEFT, OUT, partitions=PARTITIONS)
    for partition, events in enumerate(trial.left):
        records = [(event.key, event.id, event.time) for event in events]
        log.write(LEFT, records, value=str, partition=partition)
    settings = {"poll_ms": 20, "session_timeout_ms": SESSION_TIMEOUT_MS}
    settings |= {"heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS}
    clients = [
        log.start(application(trial, take, state_dir=log.path / f"state{n}", **settings)) for n in range(2)
    ]
    eventually(lambda: all(shares(client) for client in clients))
    apart, paused, commits = Apart(log), False, 0.0

    def all_is_done() -> bool:
        nonlocal paused, commits
        paused |= any(client.metrics.total(names.PAUSED_TASKS) for client in clients)
        before, commits = commits, sum(client.metrics.total(names.COMMITTED) for client in clients)
        return commits != before and apart.look()

    eventually(all_is_done, "all is done")
    print(f"at the most {apart.most_ms / HOUR:.1f} hours apart")
    for client in clients:
        caught_up(client)
    for client in clients:
        assert client.close(1000 * TIMEOUT_S)
    assert not any(client.metrics.total(names.PAUSED_TASKS) for client in clients)
    compare(expected(trial), log.read(OUT, key=str, value=str), again=isinstance(log, Cluster))
    return apart.most_ms, paused


def shares(client: Streams) -> bool:
    """Whether it has a part of the source's tasks."""
    tasks = [task for thread in client.progress().threads for task in thread.tasks]
    return 0 < len([task for task in tasks if task.task_id.subtopology == 0]) < PARTITIONS


def test_who_is_ahead_pauses(tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        most_ms, paused = catch_up(log, partial(take_time, times=1))
    assert paused
    assert most_ms < HOURS / 3 * HOUR


def test_without_pauses_the_distance_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """So the test above can fail."""
    monkeypatch.setattr(Pausing, "until", lambda _, task, until_ms: until_ms)
    with closing(Log(tmp_path)) as log:
        most_ms, _ = catch_up(log, take_turns())
    assert most_ms > HOURS / 2 * HOUR


@pytest.mark.kafka
def test_on_kafka_who_is_ahead_pauses(cluster: Cluster):
    # What a commit and a look at the group take on Kafka is long beside two seconds.
    most_ms, paused = catch_up(cluster, partial(take_time, times=3 * slowness(cluster)))
    assert paused
    assert most_ms < HOURS / 3 * HOUR


def slowness(cluster: Cluster) -> float:
    """How many times as long as usual Kafka takes for a question, 1 to 3. On a busy machine a pause begins later, and
    who is ahead comes further until then."""
    began = time.monotonic()
    for _ in range(20):
        cluster.committed(NAME)
    return min(max(1.0, (time.monotonic() - began) / 20 / USUAL_S), 3.0)

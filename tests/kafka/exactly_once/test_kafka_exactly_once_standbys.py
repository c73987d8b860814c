"""Exactly once, a process with standbys takes over from one that was killed without restoring, and counts every record
once."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing

import pytest

from apps import wordcount
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.streams import Streams
from tests.kafka.exactly_once.word_counts import SETTINGS, WordCounts
from tests.kafka.support import Cluster
from tests.live.support import eventually, freeze, running
from tests.live.test_standbys import Input, Process, Restores, goes_on_when_the_other_is_killed

pytestmark = pytest.mark.slow

#: The tasks of word count that have a store.
COUNTING = {TaskId(1, partition) for partition in range(4)}


def test_who_takes_over_restores_nothing_and_repeats_nothing(cluster: Cluster):
    cluster.broker = cluster.broker_with(exactly_once=True)
    written = Input(cluster)
    written.write(3_000)
    one = Process(cluster, "one", num_standby_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    goes_on_when_the_other_is_killed(one, written, cluster.bootstrap_servers, "exactly_once_v2")
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for record in cluster.read("out"):
        counts[record.key].append(record.value)
    assert all(values == sorted(set(values)) for values in counts.values()), "a count was written twice"


def survivor(words: WordCounts, restores: Restores) -> Streams:
    """Word count in this process."""
    settings = {
        **SETTINGS,
        "num_standby_replicas": 1,
        "state_dir": words.cluster.path / "survivor",
        "poll_ms": 10,
    }
    broker = words.cluster.broker_with(exactly_once=True)
    streams = Streams(wordcount.app, wordcount.app.config.override(settings), broker)
    streams.set_restore_listener(restores)
    streams.start()
    running(streams)
    return streams


def counting_tasks(streams: Streams) -> set[TaskId]:
    """Those of its tasks that have a store."""
    threads = streams.metadata_for_local_threads()
    return {task.task_id for thread in threads for task in thread.tasks} & COUNTING


def followed(streams: Streams) -> set[TaskId]:
    return {standby.task_id for standby in streams.progress().standbys if standby.lag is not None}


def in_the_middle(words: WordCounts, tasks: set[TaskId]) -> bool:
    """Whether each of these tasks has written what is not committed."""
    changes = [TopicPartition("wordcount-counts-changelog", task.partition) for task in tasks]
    admin = words.cluster.admin
    ends, stable = admin.end_offsets(changes), admin.stable_end_offsets(changes)
    return all(ends[change] > stable[change] for change in changes)


def test_who_takes_over_from_a_busy_process_restores_nothing_and_repeats_nothing(words: WordCounts):
    restores = Restores()
    with closing(survivor(words, restores)) as streams:
        words.write(1_000)
        words.done()
        busy = words.start("busy", num_standby_replicas=1)

        def while_input_comes(condition: Callable[[], bool]) -> Callable[[], bool]:
            def written_and() -> bool:
                words.write(50)
                return condition()

            return written_and

        eventually(
            while_input_comes(lambda: 0 < len(counting_tasks(streams)) < len(COUNTING)),
            "the other process has tasks",
        )
        taken = COUNTING - counting_tasks(streams)
        eventually(while_input_comes(lambda: followed(streams) == taken), "standbys of what it has")
        before = restores.records.total()

        def stopped_in_the_middle() -> bool:
            freeze(busy.pid)
            if in_the_middle(words, taken):
                return True
            busy.send_signal(signal.SIGCONT)
            return False

        eventually(while_input_comes(stopped_in_the_middle), "a process in the middle of its work")
        busy.kill()
        busy.wait()
        eventually(
            while_input_comes(lambda: counting_tasks(streams) == COUNTING), "all tasks in the survivor"
        )
        words.write(200)
        words.done()
        assert restores.records.total() == before == 0
    words.check()

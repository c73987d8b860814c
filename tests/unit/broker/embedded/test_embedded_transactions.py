"""Transactions of the embedded log alone: a writer's lock goes with its process, and what fails has written nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import CommittedOffset, TopicSpec, Write
from pystreams.errors import BrokerError, BrokerUnavailableError, TopicError
from pystreams.ids import TopicPartition
from tests.live.support import eventually

T0 = TopicPartition("t", 0)


@pytest.fixture
def log(broker: EmbeddedBroker):
    with closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec("t", 1)])
        yield admin


def test_a_writer_that_is_killed_is_out_of_the_way(broker, tmp_path: Path):
    program = (
        "import sys, time; from pystreams.broker.embedded import EmbeddedBroker;"
        "producer = EmbeddedBroker(sys.argv[1]).transactional_producer('c', 'id');"
        "print('there', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "log.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        with pytest.raises(BrokerError):
            broker.transactional_producer("c", "id")
        process.kill()
        process.wait()
    eventually(lambda: broker.transactional_producer("c", "id").close() is None)


def test_offsets_and_records_come_together_or_not_at_all(broker, log):
    offsets = {T0: CommittedOffset(7, "text")}
    with closing(broker.group_committer("c", "g", "id")) as committer:
        with pytest.raises(TopicError):
            committer.commit([Write("t", 0, b"k", b"v", 1), Write("gone", 0, b"k", b"v", 1)], offsets)
        assert (log.group_offsets("g"), log.end_offsets([T0])) == ({}, {T0: 0})
        committer.commit([Write("t", 0, b"k", b"v", 1)], offsets)
        assert (log.group_offsets("g"), log.end_offsets([T0])) == (offsets, {T0: 1})


def test_another_process_reports_that_the_log_is_not_there(broker, log, tmp_path: Path):
    opener = pickle.loads(pickle.dumps(broker.opener()))
    (tmp_path / "log.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(BrokerUnavailableError, match="no embedded log at"):
        opener()

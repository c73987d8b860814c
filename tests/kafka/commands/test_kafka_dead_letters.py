"""On a real Kafka dead letters are counted and shown while the transaction of a killed replay is still open, and a
second replay ends the first."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import Any

import pytest

from pystreams.cli.commands.dlq.marks import create_marks
from pystreams.cli.commands.dlq.plan import Targets
from pystreams.cli.commands.dlq.selection import Filter, Letters
from pystreams.cli.commands.dlq.writing import Writing
from pystreams.cli.main import main
from pystreams.errors import SupersededError
from pystreams.handlers import dead_letter_record
from tests.cli.dlq.dlq_kit import failure
from tests.kafka.support import Cluster
from tests.live.replay_kit import replay


@pytest.fixture
def buried(cluster: Cluster) -> Cluster:
    """A cluster with 30 dead letters of topic orders."""
    cluster.create("orders", "dead", partitions=2)
    with closing(cluster.broker.producer("test", "test")) as producer:
        for n in range(30):
            letter = failure(b"v%d" % n, offset=n // 2, partition=n % 2, key=b"k%d" % n)
            producer.send("dead", None, *dead_letter_record(letter))
        producer.commit({}, None)
    return cluster


def command(cluster: Cluster, capfd: Any, *arguments: str) -> list[str]:
    """The standard output of a command, which has to succeed."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--bootstrap-servers", cluster.bootstrap_servers])
    captured = capfd.readouterr()
    assert ended.value.code == 0, captured.err
    return captured.out.splitlines()


def values(cluster: Cluster) -> list[bytes | None]:
    return sorted(
        line.value for p in cluster.partitions("orders") for line in cluster.lines(p).values() if line.value
    )


def test_an_open_transaction_holds_up_neither_list_nor_show(buried: Cluster, capfd: Any) -> None:
    assert replay(buried, kill=("before", 2)) == -signal.SIGKILL
    (line,) = command(buried, capfd, "dlq", "list", "dead")
    assert line.split("\t")[:5] == ["parse", "ValueError", "orders", "30", "7"]
    shown = command(buried, capfd, "dlq", "show", "dead")
    assert sum("replayed: yes" in line for line in shown) == 7
    assert replay(buried) == 0
    assert values(buried) == sorted(b"v%d" % n for n in range(30))


def test_a_second_replay_ends_the_first_whose_records_are_void(
    buried: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = Letters.now(buried.broker, buried.admin, "dead")
    create_marks(buried.admin, letters.topic)
    targets = Targets(buried.admin, buried.broker.description, None, by_key=False)
    first = Writing(letters, Filter(), targets, buried.admin)
    commit = first._commit

    def overtaken(*arguments: Any) -> None:
        assert replay(buried) == 0
        commit(*arguments)

    monkeypatch.setattr(first, "_commit", overtaken)
    with pytest.raises(SupersededError, match="another process writes as pystreams-replay-dead now"):
        first.run()
    assert values(buried) == sorted(b"v%d" % n for n in range(30))

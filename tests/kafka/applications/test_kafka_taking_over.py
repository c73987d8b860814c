"""A new version on Kafka takes over what the old one has stored."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pystreams.cli.commands.reset import carry_out, plan_reset
from pystreams.clock import Clock, SystemClock
from pystreams.errors import BrokerError, StreamsError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.runtime.startup import carry_over
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, caught_up, eventually, run_to_the_end
from tests.live.taking_over_kit import One, Two, kept, lines, summing, write


@pytest.fixture(autouse=True)
def topics(cluster: Cluster) -> None:
    cluster.create("in", "out", partitions=2)
    write(cluster, 100)


def test_another_machine_knows_what_ran_last(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, Two))
    elsewhere = {"state_dir": cluster.path / "elsewhere"}
    with pytest.raises(TopologyError, match="stored content would be lost: sums"):
        cluster.start(summing(cluster, One, settings=elsewhere))
    with pytest.raises(TopologyError, match="stored content would be lost: sums"):
        cluster.start(summing(cluster, Two, "totals", elsewhere))
    before = kept(cluster)
    write(cluster, 5)
    run_to_the_end(cluster, summing(cluster, One, settings={**elsewhere, "accept_loss": "sums"}))
    assert cluster.table("out") == dict.fromkeys("abcdef", 105)
    assert kept(cluster) != before


def test_content_is_carried_over_to_another_name(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    before = lines(cluster, "shop-sums-changelog")
    write(cluster, 5)
    for _ in range(2):
        run_to_the_end(cluster, summing(cluster, One, "totals", was="sums"))
        assert cluster.table("out") == dict.fromkeys("abcdef", 105)
    after = lines(cluster, "shop-totals-changelog")
    assert all(copied >= was for copied, was in zip(after, before, strict=True))
    assert sum(map(Counter.total, after)) == 12
    assert "shop-sums-changelog" not in cluster.admin.partition_counts()


def test_a_store_whose_loss_is_accepted_begins_anew(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    write(cluster, 5)
    run_to_the_end(cluster, summing(cluster, One, "totals", {"accept_loss": "sums"}))
    assert cluster.table("out") == dict.fromkeys("abcdef", 5)
    assert "shop-sums-changelog" not in cluster.admin.partition_counts()


def test_nothing_is_deleted_while_the_old_version_runs(cluster: Cluster) -> None:
    old = cluster.start(summing(cluster, One))
    caught_up(old)
    with pytest.raises(BrokerError, match="is running"):
        cluster.start(summing(cluster, One, "totals", {"state_dir": cluster.path / "elsewhere"}, was="sums"))
    write(cluster, 5)
    caught_up(old)
    assert cluster.table("out") == dict.fromkeys("abcdef", 105)


def test_what_another_machine_has_of_before_a_reset_is_restored(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    elsewhere = cluster.path / "elsewhere"
    # Nothing that was written is processed again.
    carry_out(cluster.admin, plan_reset(cluster.admin, cluster.broker, "shop", ["in"], elsewhere, "latest"))
    for settings in ({"state_dir": elsewhere}, None):
        write(cluster, 5)
        run_to_the_end(cluster, summing(cluster, One, settings=settings))
    assert cluster.table("out") == dict.fromkeys("abcdef", 10)


class Onlooker(SystemClock):
    """A member that starts when another one copies, and the time for it: nearly as much as it waits for who is dead
    passes between one record of the copy, when it has seen this, and the next."""

    def __init__(self, topic: str) -> None:
        self.copying = threading.Event()
        self._topic = topic
        self._ahead_ms = 0.0
        #: How many records it has seen, each time that it looked.
        self._seen: list[int] = []

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self._ahead_ms

    def saw(self, ends: Mapping[TopicPartition, int]) -> None:
        if any(partition.topic == self._topic for partition in ends):
            self._seen.append(sum(ends.values()))

    def let_time_pass(self, copied: int) -> None:
        self.copying.set()
        # When it looks for the second time it knows since when there is no more to see.
        eventually(lambda: [seen >= copied for seen in self._seen[-2:]] == [True, True], "it looks")
        self._ahead_ms += 0.9 * carry_over._BY_ANOTHER_MS


class Copying:
    """A cluster for the member that copies."""

    def __init__(self, inner: Any, onlooker: Onlooker) -> None:
        self._inner = inner
        self._onlooker = onlooker
        self.copied = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def transactional_producer(self, client_id: str, transactional_id: str) -> Any:
        self._producer = self._inner.transactional_producer(client_id, transactional_id)
        return Replaced(self._producer, send=self._send)

    def _send(self, *arguments: Any) -> None:
        self._onlooker.let_time_pass(self.copied)
        self._producer.send(*arguments)
        self.copied += 1


class Watching:
    """A cluster for the member that looks on."""

    def __init__(self, inner: Any, onlooker: Onlooker) -> None:
        self._inner = inner
        self._onlooker = onlooker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def admin(self) -> Any:
        assert self._onlooker.copying.wait(TIMEOUT_S)
        self._admin = self._inner.admin()
        return Replaced(self._admin, end_offsets=self._end_offsets)

    def _end_offsets(self, *arguments: Any, **named: Any) -> dict[TopicPartition, int]:
        ends = self._admin.end_offsets(*arguments, **named)
        self._onlooker.saw(ends)
        return ends


class Replaced:
    """What is as ``inner``, but for some methods."""

    def __init__(self, inner: Any, **methods: Callable[..., Any]) -> None:
        self._inner = inner
        vars(self).update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_who_starts_while_content_is_copied_lets_that_end(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    onlooker = Onlooker("shop-totals-changelog")
    copying = Copying(cluster.broker, onlooker)
    second = member(cluster, 1, Watching(cluster.broker, onlooker), onlooker)
    start_together(cluster, [member(cluster, 0, copying), second])
    assert copying.copied == 6


class Late:
    """A cluster on which the member that first asks for a producer of copies gets it after the second one, which sends
    nothing before that."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._asked = itertools.count()
        self._created = [threading.Event(), threading.Event()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def transactional_producer(self, client_id: str, transactional_id: str) -> Any:
        number = next(self._asked)
        if number == 0:
            assert self._created[1].wait(TIMEOUT_S)
        producer = self._inner.transactional_producer(client_id, transactional_id)
        if number < 2:
            self._created[number].set()
        if number == 1:
            assert self._created[0].wait(TIMEOUT_S)
        return producer


def test_who_is_superseded_by_a_member_that_gives_up_tries_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry_over, "_BY_ANOTHER_MS", 500.0)
    run_to_the_end(cluster, summing(cluster, One))
    late = Late(cluster.broker)
    start_together(cluster, [member(cluster, number, late) for number in range(2)])


def member(cluster: Cluster, number: int, broker: Any, clock: Clock | None = None) -> Streams:
    """A member of the new version, on a machine of its own."""
    settings = {"state_dir": cluster.path / f"machine-{number}"}
    return Streams(summing(cluster, One, "totals", settings, was="sums"), broker=broker, clock=clock)


def start_together(cluster: Cluster, clients: list[Streams]) -> None:
    """All members start, and the content is there once."""
    failures: list[StreamsError] = []

    def start(client: Streams) -> None:
        try:
            client.start()
        except StreamsError as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert not failures
        assert sum(map(Counter.total, lines(cluster, "shop-totals-changelog"))) == 6
    finally:
        for client in clients:
            client.close()

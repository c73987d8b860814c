"""Whatever request of a start or a commit is lost, not answered or late: every result is written once; with
at_least_once none is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.kafka import streams_member
from pystreams.broker.kafka.coordinator import StreamsCoordinator
from pystreams.runtime.streams import Streams
from tests.broker.following import LONG_SESSION_MS
from tests.examples import chosen
from tests.kafka.exactly_once.proxy import Fate, Fault, Proxy
from tests.kafka.exactly_once.word_counts import APPLICATION, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, caught_up, eventually, running

pytestmark = pytest.mark.slow

EXACTLY_ONCE: dict[str, Any] = {"processing_guarantee": "exactly_once_v2"}


@pytest.fixture(scope="module")
def proxied(
    server: KafkaServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KafkaServer, Proxy]]:
    """A broker that clients reach only through the proxy. (``server`` is asked for because it knows whether Kafka can
    be had.)"""
    with closing(Proxy()) as proxy:
        broker = KafkaServer(
            tmp_path_factory.mktemp("proxied"),
            properties={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"},
        )
        proxy.target_port = broker.port
        broker.start()
        try:
            yield broker, proxy
        finally:
            broker.stop()


@pytest.fixture
def proxy(proxied: tuple[KafkaServer, Proxy]) -> Iterator[Proxy]:
    yield proxied[1]
    proxied[1].remove_all()


@pytest.fixture
def cluster(proxied: tuple[KafkaServer, Proxy], tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(f"127.0.0.1:{proxied[1].port}", tmp_path)) as cluster:
        cluster.broker = cluster.broker_with(exactly_once=True)
        yield cluster


def counting(cluster: Cluster, **settings: Any) -> App:
    app = cluster.app(
        "counting",
        bootstrap_servers=cluster.bootstrap_servers,
        statestore_cache_max_bytes=0,
        **EXACTLY_ONCE,
        **settings,
    )
    app.stream("in", key=str, value=int).group_by(lambda k, v: k[::-1], key=str).count(
        name="counts"
    ).to_stream().to("out")
    return app


class Counted:
    """What the application that counts gets, and what must come out."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.written = 0
        cluster.create("in", "out", partitions=2)

    def write(self, records: int) -> None:
        numbers = range(self.written, self.written + records)
        self.cluster.write("in", [(f"k{i % 7}", i, i + 1) for i in numbers])
        self.written += records

    def check(self) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for record in self.cluster.read("out"):
            found[record.key].append(record.value)
        counts = {f"{i}k": len([n for n in range(self.written) if n % 7 == i]) for i in range(7)}
        wrong = {key: values for key, values in found.items() if values != list(range(1, counts[key] + 1))}
        assert wrong == {}
        assert sum(map(len, found.values())) == self.written


def filtering(cluster: Cluster, **settings: Any) -> App:
    """Passes on what is not negative."""
    app = cluster.app("filtering", bootstrap_servers=cluster.bootstrap_servers, **settings)
    app.stream("in", key=str, value=int).filter(lambda _, number: number >= 0).to("out")
    return app


class Filtered:
    """The numbers that the application that filters gets, and those that come out."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.passed = 0
        cluster.create("in", "out", partitions=2)

    def write(self, records: int) -> None:
        """What is passed on."""
        numbers = range(self.passed, self.passed + records)
        self.cluster.write("in", [(f"k{i}", i, 1) for i in numbers])
        self.passed += records

    def write_dropped(self, records: int) -> None:
        self.cluster.write("in", [(f"k{i}", -1, 1) for i in range(records)])

    def found_after_restart(self, streams: Streams, again: App) -> list[int]:
        """What has come out when the application has gone on from the committed offsets."""
        assert streams.close(1000 * TIMEOUT_S)
        self.write(50)
        caught_up(self.cluster.start(again))
        return sorted(record.value for record in self.cluster.read("out"))


def write_until_hit(fault: Fault, streams: Streams, write: Callable[[int], None]) -> None:
    while fault.hits < fault.count:
        write(50)
        eventually(lambda: fault.hits == fault.count or streams.caught_up(), "the requests are hit")


def wait_until_hit(*faults: Fault) -> None:
    eventually(lambda: all(fault.hits == fault.count for fault in faults), "the requests are hit")


def write_until_late(proxy: Proxy, arrived: int, write: Callable[[int], None]) -> None:
    """Have a transaction open when the late requests arrive."""

    def all_have_arrived() -> bool:
        write(5)
        return proxy.delivered_late >= arrived

    eventually(all_have_arrived, "the late requests arrive")


#: With what the ids of the clients hold that send them.
REQUESTS = [
    ("AddPartitionsToTxn", "counting"),
    ("Produce", "counting"),
    ("AddOffsetsToTxn", "transactions"),
    ("TxnOffsetCommit", "transactions"),
    ("EndTxn", "counting"),
]
FATES: list[Fate] = ["lost", "unanswered", "late"]


def test_a_request_of_a_commit_that_fails_changes_no_result(cluster: Cluster, proxy: Proxy) -> None:
    counted = Counted(cluster)
    streams = cluster.start(counting(cluster))
    running(streams)
    counted.write(100)
    for (api, client), fate in product(REQUESTS, FATES):
        print(api, fate)
        caught_up(streams)
        late_before = proxy.delivered_late
        fault = proxy.add(Fault(api, fate, client, skip=2, count=2))
        write_until_hit(fault, streams, counted.write)
        if fate == "late":
            write_until_late(proxy, late_before + fault.hits, counted.write)
        counted.write(100)
        caught_up(streams)
        counted.check()
        assert streams.failure is None
        assert fault.hits == fault.count


def test_a_late_end_of_a_transaction_does_not_end_the_next_one_of_a_bulk_writer(
    cluster: Cluster, proxy: Proxy
) -> None:
    cluster.create("out")
    fault = proxy.add(Fault("EndTxn", "late", "bulk-writer"))
    with closing(cluster.broker.transactional_producer("bulk-writer", "bulk")) as writer:
        writer.send("out", 0, b"k", b"kept", 1, ())
        writer.commit()
        assert fault.hits == 1
        late_before = proxy.delivered_late
        writer.send("out", 0, b"k", b"given up", 1, ())
        eventually(lambda: proxy.delivered_late > late_before, "the late request arrives")
    assert [record.value for record in cluster.read("out", value=bytes)] == [b"kept"]


#: What else a commit asks: with what the ids of the clients hold that ask. A thread's member has its transactional id,
#: the only one in which two numbers follow each other.
MEMBER, COORDINATORS, PRODUCER, ADMIN = "-1-1", "-transactions", "-producer", "pystreams-admin"


def fail(
    proxy: Proxy,
    fate: Fate,
    questions: Sequence[tuple[str, str]],
    write: Callable[[int], None],
    *,
    skip: int = 0,
    count: int = 2,
) -> None:
    """Write, and have questions of the commits that follow fail, ``count`` times each, after ``skip`` others. Whether
    the application has caught up is not looked up meanwhile: that would be the same requests."""
    late_before = proxy.delivered_late
    faults = [proxy.add(Fault(api, fate, client, skip=skip, count=count)) for api, client in questions]
    write(50)
    wait_until_hit(*faults)
    if fate == "late":
        write_until_late(proxy, late_before + count * len(faults), write)


def test_the_ends_of_changelogs_that_a_commit_does_not_learn_change_no_result(
    cluster: Cluster, proxy: Proxy
) -> None:
    """Asked for between the records and the offsets of a transaction; and then, where the leaders are."""
    counted = Counted(cluster)
    streams = cluster.start(counting(cluster))
    counted.write(50)
    for fate in FATES:
        caught_up(streams)
        fail(proxy, fate, [("ListOffsets", ADMIN), ("Metadata", ADMIN)], counted.write)
    caught_up(streams)
    counted.check()
    assert streams.failure is None


def test_committed_offsets_that_a_first_commit_does_not_learn_change_no_result(
    cluster: Cluster, proxy: Proxy
) -> None:
    """Before the first commit of a task its offsets are read again; and then, where the group's coordinator is."""
    counted = Counted(cluster)
    for fate in FATES:
        streams = cluster.start(counting(cluster))
        caught_up(streams)
        fail(proxy, fate, [("OffsetFetch", MEMBER), ("FindCoordinator", MEMBER)], counted.write)
        caught_up(streams)
        assert streams.close(1000 * TIMEOUT_S)
        assert streams.failure is None
    counted.check()


@pytest.mark.parametrize(
    ("group_protocol", "heartbeat"), [("classic", "Heartbeat"), ("streams", "StreamsGroupHeartbeat")]
)
def test_a_membership_that_a_commit_cannot_confirm_changes_no_result(
    cluster: Cluster,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    group_protocol: str,
    heartbeat: str,
) -> None:
    """Each commit asks, as after a session without an answer. A classic member sends no other heartbeat so soon."""
    monkeypatch.setattr(StreamsCoordinator, "doubtful", True)
    monkeypatch.setattr(streams_member, "_SESSION_TIMEOUT_MS", -1)
    cluster.broker = cluster.broker_with(
        exactly_once=True, session_timeout_ms=LONG_SESSION_MS, heartbeat_interval_ms=LONG_SESSION_MS // 3
    )
    counted = Counted(cluster)
    streams = cluster.start(counting(cluster, group_protocol=group_protocol))
    for fate in FATES:
        caught_up(streams)
        fail(proxy, fate, [(heartbeat, MEMBER), ("FindCoordinator", MEMBER)], counted.write)
    caught_up(streams)
    counted.check()
    assert streams.failure is None


def test_coordinators_that_a_commit_does_not_find_change_no_result(cluster: Cluster, proxy: Proxy) -> None:
    """That of the transaction is looked up before the offsets are announced, that of the group afterwards, if they have
    been forgotten because something had failed."""
    broker: Any = cluster.broker
    counted = Counted(cluster)
    streams = cluster.start(counting(cluster))
    for of_the_group, fate in product((0, 1), FATES):
        caught_up(streams)
        broker._transactions().forget_coordinators()
        fail(proxy, fate, [("FindCoordinator", COORDINATORS)], counted.write, skip=of_the_group)
    caught_up(streams)
    counted.check()
    assert streams.failure is None


def test_questions_about_the_last_transaction_that_fail_change_no_result(
    cluster: Cluster, proxy: Proxy
) -> None:
    """After a commit with a lost connection another client takes the transactional id over, once it is known that
    nothing of the last transaction hangs."""
    counted = Counted(cluster)
    streams = cluster.start(counting(cluster))
    counted.write(50)
    for fate in FATES:
        caught_up(streams)
        proxy.add(Fault("Produce", "lost", PRODUCER))
        questions = [
            *(
                (api, COORDINATORS)
                for api in ("FindCoordinator", "DescribeTransactions", "DescribeProducers")
            ),
            *((api, PRODUCER) for api in ("FindCoordinator", "InitProducerId")),
        ]
        fail(proxy, fate, questions, counted.write, count=1)
    caught_up(streams)
    counted.check()
    assert streams.failure is None


@pytest.mark.parametrize(("group_protocol", "fates"), [("classic", FATES), ("streams", FATES[-1:])])
def test_a_commit_without_records_that_fails_changes_no_result(
    cluster: Cluster, proxy: Proxy, group_protocol: str, fates: Sequence[Fate]
) -> None:
    """Offsets alone need no transaction: only the group can refuse a late request. If it set back what was committed
    after it, the next start would write results again. Each thread is hit, and twice in a row: a group need not begin
    another generation when a member joins again that is not its leader."""
    numbers = Filtered(cluster)
    settings = {**EXACTLY_ONCE, "group_protocol": group_protocol, "num_stream_threads": 2}
    streams = cluster.start(filtering(cluster, **settings))
    running(streams)
    numbers.write(100)
    caught_up(streams)
    late_before = proxy.delivered_late
    for fate, thread in product(fates, (1, 2)):
        in_transactions = proxy.add(Fault("TxnOffsetCommit", "lost"))
        fault = proxy.add(Fault("OffsetCommit", fate, f"{streams.client_id}-{thread}", count=2))
        write_until_hit(fault, streams, numbers.write_dropped)
        assert in_transactions.hits == 0
        proxy.remove(in_transactions)
        numbers.write(50)
        caught_up(streams)
    eventually(lambda: proxy.delivered_late >= late_before + 4, "the late requests arrive")
    found = numbers.found_after_restart(streams, filtering(cluster, **settings))
    assert found == list(range(numbers.passed))


def test_a_late_commit_changes_no_result_if_the_group_cannot_be_left(
    cluster: Cluster, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """After a commit without an answer, a member to which the broker assigns tasks leaves the group and joins again.
    Here it cannot leave at first, and the late request comes after it has joined."""
    numbers = Filtered(cluster)
    settings = {**EXACTLY_ONCE, "group_protocol": "streams"}
    streams = cluster.start(filtering(cluster, **settings))
    running(streams)
    numbers.write(100)
    caught_up(streams)
    late_before = proxy.delivered_late
    beats = proxy.add(Fault("StreamsGroupHeartbeat", "lost", "filtering", count=sys.maxsize))
    fault = proxy.add(Fault("OffsetCommit", "late", "filtering", late_s=5))
    write_until_hit(fault, streams, numbers.write_dropped)
    eventually(lambda: "could not leave the group" in caplog.text, "it gives up")
    proxy.remove(beats)
    numbers.write(50)
    caught_up(streams)
    eventually(lambda: proxy.delivered_late > late_before, "the late request arrives")
    found = numbers.found_after_restart(streams, filtering(cluster, **settings))
    assert found == list(range(numbers.passed))


def test_a_start_whose_request_for_a_producer_id_fails_changes_no_result(
    cluster: Cluster, proxy: Proxy
) -> None:
    counted = Counted(cluster)
    for fate in FATES:
        counted.write(100)
        late_before = proxy.delivered_late
        fault = proxy.add(Fault("InitProducerId", fate, "counting", count=2))
        streams = cluster.start(counting(cluster))
        running(streams)
        wait_until_hit(fault)
        if fate == "late":
            write_until_late(proxy, late_before + fault.count, counted.write)
        counted.write(100)
        caught_up(streams)
        assert streams.close(1000 * TIMEOUT_S)
        counted.check()


def test_a_commit_that_fails_loses_nothing_at_least_once(cluster: Cluster, proxy: Proxy) -> None:
    cluster.broker = cluster.broker_with()
    numbers = Filtered(cluster)
    streams = cluster.start(filtering(cluster))
    running(streams)
    numbers.write(100)
    caught_up(streams)
    late_before = proxy.delivered_late
    for fate in FATES:
        fault = proxy.add(Fault("OffsetCommit", fate, "filtering", count=2))
        write_until_hit(fault, streams, numbers.write)
        numbers.write(50)
        caught_up(streams)
    eventually(lambda: proxy.delivered_late >= late_before + 2, "the late requests arrive")
    found = numbers.found_after_restart(streams, filtering(cluster))
    assert set(found) == set(range(numbers.passed))


def write_until_ended(words: WordCounts, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        words.write(20)
        time.sleep(0.1)  # lines come in while it works


def test_kill_9_between_any_two_requests_of_a_commit_changes_no_result(
    words: WordCounts, proxy: Proxy
) -> None:
    """Killed before each request and after the last one, every time with all that is left of it: its state and its
    transaction."""
    order: list[tuple[str, Fate]] = chosen(
        [(api, fate) for api, _ in REQUESTS for fate in ("lost", "unanswered")],
        # After a request and before the next one is the same.
        lambda case: case[1] == "lost" or case[0] == REQUESTS[-1][0],
    )
    words.choose.shuffle(order)
    for api, fate in order:
        process = words.start(words.choose.choice(["one", "two"]))
        skip = words.choose.randrange(4)
        fault = proxy.add(Fault(api, fate, APPLICATION, skip=skip, instead=process.kill))
        write_until_ended(words, process)
        assert (fault.hits, process.returncode) == (1, -signal.SIGKILL), words.printed()
    words.start("one")
    words.done()
    words.stop_all()
    words.check()


def test_kill_9_after_the_last_answer_of_a_commit_changes_no_result(words: WordCounts) -> None:
    """The transaction has ended and the process knows it, but has done nothing else: its stores lack what their
    changelogs and the results have. The next process goes on with that state, or begins without."""
    for name, passing in (("two", 2), ("one", 3)):
        process = words.start(name, aim=f"transaction-ended:{passing}")
        write_until_ended(words, process)
        assert process.returncode == -signal.SIGKILL, words.printed()
    words.start("one")
    words.done()
    words.stop_all()
    words.check()


def test_a_request_for_the_producer_id_of_who_was_killed_that_fails_changes_no_result(
    words: WordCounts, proxy: Proxy
) -> None:
    """A process that is killed leaves a transaction open. The next one has another state directory and thus another
    transactional id, or the same ones. By the same request, over two connections, it aborts the transaction and takes
    its id."""
    directory = 0
    process = words.start(str(directory))
    for fate, other in chosen(
        product(FATES, (True, False)),
        lambda case: case not in (("lost", False), ("unanswered", True)),
    ):
        killing = proxy.add(Fault("TxnOffsetCommit", "unanswered", APPLICATION, instead=process.kill))
        write_until_ended(words, process)
        assert (killing.hits, process.returncode) == (1, -signal.SIGKILL), words.printed()
        late_before = proxy.delivered_late
        faults = [
            proxy.add(Fault("InitProducerId", fate, client)) for client in ("-transactions", "-producer")
        ]
        directory += other
        process = words.start(str(directory))
        if fate == "late":
            write_until_late(proxy, late_before + len(faults), words.write)
        wait_until_hit(*faults)
    words.done()
    words.stop_all()
    words.check()

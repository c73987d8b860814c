"""Whatever request of a commit is lost, not answered or late: every result is written once."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.exactly_once.proxy import Fate, Fault, Proxy
from tests.kafka.exactly_once.word_counts import APPLICATION, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, running

pytestmark = pytest.mark.slow


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
def proxy(proxied: tuple[KafkaServer, Proxy]) -> Proxy:
    return proxied[1]


@pytest.fixture
def cluster(proxied: tuple[KafkaServer, Proxy], tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(f"127.0.0.1:{proxied[1].port}", tmp_path)) as cluster:
        cluster.broker = cluster.broker_with(exactly_once=True)
        yield cluster


def counting(cluster: Cluster):
    app = cluster.app(
        "counting",
        bootstrap_servers=cluster.bootstrap_servers,
        processing_guarantee="exactly_once_v2",
        statestore_cache_max_bytes=0,
    )
    app.stream("in", key=str, value=int).group_by(lambda k, v: k[::-1], key=str).count(
        name="counts"
    ).to_stream().to("out")
    return app


#: With what the ids of the clients hold that send them.
REQUESTS = [
    ("AddPartitionsToTxn", "counting"),
    ("Produce", "counting"),
    ("AddOffsetsToTxn", "transactions"),
    ("TxnOffsetCommit", "transactions"),
    ("EndTxn", "counting"),
]
FATES: list[Fate] = ["lost", "unanswered", "late"]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize(("api", "client"), REQUESTS)
def test_a_request_of_a_commit_that_fails_changes_no_result(
    cluster: Cluster, proxy: Proxy, api: str, client: str, fate: Fate
):
    cluster.create("in", "out", partitions=2)
    streams = cluster.start(counting(cluster))
    running(streams)
    written = 0

    def write(records: int) -> None:
        nonlocal written
        cluster.write("in", [(f"k{i % 7}", i, i + 1) for i in range(written, written + records)])
        written += records

    write(500)
    caught_up(streams)
    fault = proxy.add(Fault(api, fate, client, skip=2, count=2))
    late_before = proxy.delivered_late
    while fault.hits < fault.count:
        write(50)
        eventually(lambda: fault.hits == fault.count or streams.caught_up(), "the requests are hit")
    write(500)
    if fate == "late":
        eventually(lambda: proxy.delivered_late >= late_before + fault.hits, "the late requests arrive")
        write(500)
    caught_up(streams)
    found: dict[str, list[int]] = defaultdict(list)
    for record in cluster.read("out"):
        found[record.key].append(record.value)
    counts = {f"{i}k": len([n for n in range(written) if n % 7 == i]) for i in range(7)}
    assert {key: values for key, values in found.items() if values != list(range(1, counts[key] + 1))} == {}
    assert sum(map(len, found.values())) == written
    assert streams.failure is None
    assert fault.hits == fault.count


def test_kill_9_between_any_two_requests_of_a_commit_changes_no_result(words: WordCounts, proxy: Proxy):
    """Killed before and after each request, every time with all that is left of it: its state and its transaction."""
    order: list[tuple[str, Fate]] = [(api, fate) for api, _ in REQUESTS for fate in ("lost", "unanswered")]
    words.choose.shuffle(order)
    for api, fate in order:
        process = words.start(words.choose.choice(["one", "two"]))
        skip = words.choose.randrange(4)
        fault = proxy.add(Fault(api, fate, APPLICATION, skip=skip, instead=process.kill))
        while process.poll() is None:
            words.write(20)
            time.sleep(0.02)  # lines come in while it works
        assert (fault.hits, process.returncode) == (1, -signal.SIGKILL), words.printed()
    words.start("one")
    words.done()
    words.stop_all()
    words.check()

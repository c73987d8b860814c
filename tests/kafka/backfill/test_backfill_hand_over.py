"""Backfill from Kafka, hand over to Kafka, go on live: the same as live with a stop at the cut, whatever is killed.

What is compared with ran on the embedded log: offsets and bytes are the same there.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover import last_values
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.plan.manifest import Status
from pystreams.backfill.sources import KafkaSource
from pystreams.backfill.sources.last_records import last_record, last_within
from pystreams.broker.port import CommittedOffset, Write
from pystreams.errors import BrokerError, BrokerUnavailableError, StateError
from pystreams.ids import TopicPartition
from pystreams.take_over import hand_over_record as hand_over_check
from tests.backfill.kit import History
from tests.backfill.live import (
    Left,
    append,
    create,
    left_on,
    published_manifest,
    raw,
    split,
    with_sinks_before,
)
from tests.backfill.programs import history
from tests.kafka.backfill.backfill_driver import computed, program
from tests.kafka.support import Cluster
from tests.live.support import KEPT, Line, Log, caught_up, eventually, run_to_the_end

#: Both inputs are in order of time up to here, and after.
UNTIL_MS = 1_200
#: With 3 KB of metadata each, three times what one request takes.
WIDTH = 500


def past() -> History:
    """In order of time, later than 0: librdkafka takes that for no time."""
    return {
        topic: [
            [
                line._replace(timestamp=1_000 + line.timestamp)
                for line in sorted(p, key=lambda one: one.timestamp)
            ]
            for p in partitions
        ]
        for topic, partitions in history("windowed sum", 7, 2).items()
    }


def cut_of(records: History) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, number): sum(line.timestamp < UNTIL_MS for line in of_partition)
        for topic, partitions in records.items()
        for number, of_partition in enumerate(partitions)
    }


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """What live leaves that stopped at the cut and started again."""
    log = Log(tmp_path_factory.mktemp("live"))
    try:
        create(log, past(), ["sums"])
        for part in split(past(), cut_of(past())):
            append(log, part)
            run_to_the_end(log, program(log.path))
        return left_on(log, program(log.path), ["sums"])
    finally:
        log.close()


def prepared(cluster: Cluster) -> BackfillResult:
    create(cluster, past(), ["sums"])
    append(cluster, past())
    return computed(cluster.bootstrap_servers, cluster.path, UNTIL_MS)


def gone_on(cluster: Cluster, result: BackfillResult) -> Left:
    app = program(cluster.path)
    run_to_the_end(cluster, app)
    return with_sinks_before(result, left_on(cluster, app, ["sums"]))


def test_going_on_behind_it_equals_live_with_a_stop(cluster: Cluster, live: Left) -> None:
    result = prepared(cluster)
    done = hand_over(result, cluster.broker)
    assert done.manifest.status is Status.COMMITTED
    assert published_manifest(cluster.broker, "sums") == done.manifest
    assert gone_on(cluster, result) == live
    # The application has gone on: nothing of it is set back.
    assert hand_over(result, cluster.broker).complete_before
    assert gone_on(cluster, result) == live


def killed(cluster: Cluster, aim: str) -> None:
    arguments = [cluster.bootstrap_servers, str(cluster.path), str(UNTIL_MS), aim]
    process = subprocess.run(
        [sys.executable, "-m", "tests.kafka.backfill.backfill_driver", *arguments], timeout=120, check=False
    )
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "aim, refusal",
    [
        ("members-asked:2", "another process is handing"),  # in the transaction that tells of it
        ("told:1", "the hand-over of a backfill is incomplete"),
        ("sent:2", "the hand-over of a backfill is incomplete"),
        ("published:1", "the hand-over of a backfill is incomplete"),
        ("members-asked:3", "another process is handing"),  # offsets and manifest are sent, not committed
        ("told:2", None),
    ],
)
def test_a_killed_hand_over_is_whole_or_refused_and_can_be_done_again(
    aim: str, refusal: str | None, cluster: Cluster, live: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = prepared(cluster)
    killed(cluster, aim)
    if refusal is not None:
        with monkeypatch.context() as patch:
            # What a killed one left open would be waited for in vain.
            patch.setattr(hand_over_check, "_READ_TIMEOUT_MS", 3_000.0)
            with pytest.raises(StateError, match=refusal):
                run_to_the_end(cluster, program(cluster.path))
    assert hand_over(result, cluster.broker).complete_before is (refusal is None)
    assert gone_on(cluster, result) == live


def test_what_was_sent_and_not_committed_is_no_state(cluster: Cluster) -> None:
    """A killed attempt leaves such records in a changelog, for good if another backfill is handed over then."""
    hand_over(prepared(cluster), cluster.broker)
    changelog = TopicPartition("sums-names-STATE-STORE-0000000000-changelog", 0)
    before = cluster.admin.end_offsets([changelog])[changelog]
    killed_one = cluster.broker.transactional_producer(
        "other", "sums-backfill-names-STATE-STORE-0000000000-0"
    )
    killed_one.send(*changelog, b"ghost", b"value", 1_000, ())
    killed_one._client.flush()
    cluster.broker.transactional_producer("next", "sums-backfill-names-STATE-STORE-0000000000-0").close()
    with pytest.raises(BrokerError, match="another process writes as"):
        killed_one.commit()
    killed_one.close()
    assert cluster.admin.end_offsets([changelog])[changelog] > before
    streams = cluster.start(program(cluster.path))
    caught_up(streams)
    names = streams.store("names-STATE-STORE-0000000000")
    assert "ghost" not in [key for key, _ in names.all()]


def test_another_driver_takes_over_and_the_first_can_do_nothing_more(
    cluster: Cluster, live: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one begins and ends between the publishing and the last step of the first, which was frozen."""
    result = prepared(cluster)

    def meanwhile(*_: Any) -> None:
        hand_over(result, cluster.broker)

    with pytest.raises(BrokerError, match="another process writes as sums-backfill-manifest now"):
        hand_over(result, cluster.broker, before_commit=meanwhile)
    assert gone_on(cluster, result) == live


def test_a_running_application_is_left_alone(cluster: Cluster) -> None:
    result = prepared(cluster)
    app = program(cluster.path)
    streams = cluster.start(app)
    caught_up(streams)
    before = cluster.admin.group_offsets("sums")
    with pytest.raises(BrokerError, match="sums is running"):
        hand_over(result, cluster.broker)
    with pytest.raises(BrokerError, match="sums is running"):
        emit(result, cluster.broker)
    assert cluster.admin.group_offsets("sums") == before
    assert published_manifest(cluster.broker, "sums") is None


def test_a_member_that_joins_before_the_last_step_makes_it_fail(cluster: Cluster, live: Left) -> None:
    """It asked whether a hand-over was under way before this one began, and joins when all is published."""
    result = prepared(cluster)
    check = hand_over_check.HandOverCheck.check
    try:
        hand_over_check.HandOverCheck.check = lambda self: None  # type: ignore[method-assign]

        def join(*_: Any) -> None:
            cluster.start(program(cluster.path))
            eventually(lambda: cluster.admin.group_members("sums"), "a member")

        with pytest.raises(BrokerError, match="is running"):
            hand_over(result, cluster.broker, before_commit=join)
    finally:
        hand_over_check.HandOverCheck.check = check  # type: ignore[method-assign]
    manifest = published_manifest(cluster.broker, "sums")
    assert manifest is not None
    assert manifest.status is Status.PUBLISHING


def test_sinks_get_what_was_emitted_and_then_what_live_writes(cluster: Cluster, live: Left) -> None:
    result = prepared(cluster)
    for _ in range(2):
        emit(result, cluster.broker)
    hand_over(result, cluster.broker)
    app = program(cluster.path)
    run_to_the_end(cluster, app)
    assert left_on(cluster, app, ["sums"]) == live


def test_a_delivery_may_take_longer_than_a_transaction_elsewhere(cluster: Cluster) -> None:
    """Librdkafka makes no transactional producer with such a setting, which is sound for all others."""
    broker = cluster.broker_with(client_settings={"delivery.timeout.ms": "3600000"})
    cluster.create("t")
    with closing(broker.transactional_producer("p", "id")) as producer:
        producer.send("t", 0, b"k", b"v", 1_000, ())
        producer.commit()
    assert raw(cluster, TopicPartition("t", 0)) == [Line(b"k", b"v", 1_000)]


def test_what_thousands_of_partitions_need_fits_into_a_record_and_a_commit(cluster: Cluster) -> None:
    """A record of the default size, and a coordinator that writes the offsets of a request as one."""
    partitions = [TopicPartition("wide", number) for number in range(WIDTH)]
    cluster.create("wide", partitions=WIDTH)
    cluster.create("manifest")
    noise = random.Random(1)
    offsets = {p: CommittedOffset(noise.randrange(1 << 40), noise.randbytes(1_500).hex()) for p in partitions}
    with closing(cluster.broker.group_committer("c", "wc", "id")) as committer:
        committer.probe(partitions)
        committer.commit([Write("manifest", 0, b"k", noise.randbytes(900_000), 1_000)], offsets)
    assert cluster.admin.group_offsets("wc") == offsets


def test_a_transaction_that_somebody_leaves_open_does_not_hold_it_for_ever(
    cluster: Cluster, live: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of committed records do not get past it."""
    result = prepared(cluster)
    cluster.create(
        "sums-by-window-changelog", partitions=2, config=KEPT | {"cleanup.policy": "compact,delete"}
    )
    with closing(cluster.broker.transactional_producer("other", "other")) as left_open:
        left_open.send("sums-by-window-changelog", 0, b"ghost", b"value", 1_000, ())
        left_open._client.flush()
        monkeypatch.setattr(last_values, "_SILENCE_MS_MAX", 2_000.0)
        with pytest.raises(
            BrokerUnavailableError, match="changelog sums-by-window-changelog-0 cannot be read"
        ):
            hand_over(result, cluster.broker)
    hand_over(result, cluster.broker)
    assert gone_on(cluster, result) == live


def test_a_log_is_known_again_by_the_record_before_a_transactions_marker(cluster: Cluster) -> None:
    cluster.create("t", "empty")
    one, none = TopicPartition("t", 0), TopicPartition("empty", 0)
    with closing(cluster.broker.transactional_producer("p", "id")) as producer:
        for value in (b"a", b"b"):
            producer.send("t", 0, b"k", value, 1_000, ())
            producer.commit()
    ends = {one: 4, none: 0}
    eventually(lambda: cluster.admin.end_offsets([one, none]) == ends, "the last marker is written")
    found = KafkaSource(cluster.bootstrap_servers).last_before(ends)
    assert found == {one: last_record(2, 1_000, b"k", b"b")}
    assert last_within(cluster.broker, {one: (2, 3)}) == found
    assert last_within(cluster.broker, {one: (3, 4)}) == {}

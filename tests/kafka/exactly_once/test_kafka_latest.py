"""``auto_offset_reset=latest`` begins before a transaction that is open at that moment, as Java's consumer does, and a
process that is killed begins there again."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, running


def test_what_is_committed_after_the_start_is_read(cluster: Cluster):
    cluster.create("in", "out")
    cluster.write("in", [("k", 1, 1)])
    cluster.broker = cluster.broker_with(exactly_once=True)
    app = cluster.app("later", auto_offset_reset="latest")
    app.stream("in", key=str, value=int).to("out")
    with closing(cluster.broker.transactional_producer("other", "other")) as other:
        other.send("in", 0, b"k", (2).to_bytes(8, "big"), 2, ())
        other._client.flush(10)
        cluster.write("in", [("k", 3, 3)])
        streams = cluster.start(app)
        running(streams)
        other.commit()
    cluster.write("in", [("k", 4, 4)])
    caught_up(streams)
    assert [record.value for record in cluster.read("out")] == [2, 3, 4]


@pytest.mark.slow
def test_who_is_killed_before_its_first_commit_begins_where_it_began(words: WordCounts):
    words.cluster.write("lines", [(str(n), "this was written before", n) for n in range(20)], value=str)
    latest = {"auto_offset_reset": "latest", "num_stream_threads": 1}
    killed = words.start("one", commit_interval_ms=300_000, transaction_timeout_ms=300_000, **latest)

    def where_it_began() -> dict[int, int]:
        offsets = words.cluster.committed(APPLICATION)
        return {
            partition.partition: at.offset for partition, at in offsets.items() if partition.topic == READ[0]
        }

    eventually(lambda: sum(where_it_began().values()) == 20, "where it began is committed")
    began = where_it_began()
    words.write(50)

    def a_transaction_is_open() -> bool:
        admin, partitions = words.cluster.admin, words.cluster.partitions(READ[1])
        return admin.end_offsets(partitions) != admin.stable_end_offsets(partitions)

    eventually(a_transaction_is_open, "it has begun to work")
    killed.kill()
    killed.wait()
    assert where_it_began() == began
    words.write(50)
    words.start("one", **latest)
    words.done()
    words.stop_all()
    words.check()

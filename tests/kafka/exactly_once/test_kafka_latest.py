"""``auto_offset_reset=latest`` begins before a transaction that is open at that moment, as Java's consumer does."""

from __future__ import annotations

from contextlib import closing

from tests.kafka.support import Cluster
from tests.live.support import caught_up, running


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

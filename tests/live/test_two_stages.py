"""T4: a topic between two stages makes two sub-topologies; within one, each record goes depth first."""

from __future__ import annotations

import pytest

from tests.live.support import Log, caught_up, processed

pytestmark = pytest.mark.both_logs

DESCRIPTION = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> KSTREAM-SINK-0000000001
    Sink: KSTREAM-SINK-0000000001 (topic: my-topic)
      <-- KSTREAM-SOURCE-0000000000

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000002 (topics: [my-topic])
      --> p
    Processor: p (stores: [])
      --> l, r
      <-- KSTREAM-SOURCE-0000000002
    Processor: l (stores: [])
      --> none
      <-- p
    Processor: r (stores: [])
      --> none
      <-- p
"""


def test_a_topic_between_stages_splits_the_topology_and_children_see_each_record_in_order(log: Log) -> None:
    seen: list[str] = []
    log.create("in", "my-topic")
    app = log.app("stages")
    app.stream("in", key=str, value=int).to("my-topic")
    second = app.stream("my-topic", key=str, value=int).peek(lambda value: seen.append(f"p{value}"), step="p")
    second.foreach(lambda value: seen.append(f"l{value}"), step="l")
    second.foreach(lambda value: seen.append(f"r{value}"), step="r")
    assert app.build().describe().strip() == DESCRIPTION.strip()
    log.write("in", [("k", 1, 1), ("k", 2, 2)])
    caught_up(log.start(app))
    assert seen == ["p1", "l1", "r1", "p2", "l2", "r2"]


def test_the_order_holds_with_a_flush_in_the_middle_of_a_record(log: Log) -> None:
    seen: list[str] = []
    log.create("in")
    # Room for one entry: the second key flushes the first while it is being processed.
    app = log.app("flush", statestore_cache_max_bytes=64, commit_interval_ms=600_000)
    table = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(lambda: 0, lambda total, value: total + value, name="sum", value=int)
    )
    changes = table.to_stream().peek(lambda key, value: seen.append(f"p{key}{value}"))
    changes.foreach(lambda key, value: seen.append(f"l{key}{value}"))
    changes.foreach(lambda key, value: seen.append(f"r{key}{value}"))
    log.write("in", [("A", 1, 1001), ("D", 5, 1002), ("A", 20, 1003)])
    streams = log.start(app)
    processed(streams, 3)
    streams.close()
    # Putting A again evicts D, which is clean since it was flushed when it took A's place.
    assert seen == ["pA1", "lA1", "rA1", "pD5", "lD5", "rD5", "pA21", "lA21", "rA21"]

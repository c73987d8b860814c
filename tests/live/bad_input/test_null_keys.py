"""Records without a key: dropped and counted where a key is needed, passed on where none is."""

from __future__ import annotations

from tests.live.support import Log, caught_up, run_to_the_end

RECORDS = [("k", 1, 1), (None, 2, 2), ("k", 3, 3), (None, 4, 4)]


def test_a_step_that_needs_no_key_passes_them_on(log: Log) -> None:
    log.create("in", "out")
    log.write("in", RECORDS)
    app = log.app("copy")
    app.stream("in", key=str, value=int).map_values(lambda key, value: value * 10).to("out", value=int)
    run_to_the_end(log, app)
    assert [(r.key, r.value) for r in log.read("out")] == [("k", 10), (None, 20), ("k", 30), (None, 40)]


def test_an_aggregation_drops_and_counts_them(log: Log) -> None:
    log.create("in", "out")
    log.write("in", RECORDS)
    app = log.app("sums")
    app.stream("in", key=str, value=int).group_by_key().reduce(lambda one, two: one + two).to_stream().to(
        "out"
    )
    streams = log.start(app)
    caught_up(streams)
    assert log.table("out") == {"k": 4}
    assert streams.metrics.total("dropped-records-total") == 2


def test_a_repartition_topic_is_not_sent_what_nobody_could_count(log: Log) -> None:
    log.create("in", "out")
    log.write("in", [("k", 1, 1), ("k", 2, 2), ("k", 4, 4)])
    app = log.app("keys")
    keyed = app.stream("in", key=str, value=int).group_by(
        lambda value: None if value == 2 else "odd" if value % 2 else "even", key=str, repartition="kind"
    )
    keyed.count().to_stream().to("out")
    run_to_the_end(log, app)
    assert log.table("out") == {"odd": 1, "even": 1}
    assert len(log.read("keys-kind-repartition")) == 2


def test_a_table_drops_them_and_a_join_with_it_finds_the_others(log: Log) -> None:
    log.create("left", "right", "out", "rest")
    log.write("right", RECORDS)
    log.write("left", [("k", 5, 10), (None, 6, 11)])
    app = log.app("joins")
    table = app.table("right", key=str, value=int)
    left = app.stream("left", key=str, value=int)
    left.join(table, lambda one, two: one + two).to("out", value=int)
    left.left_join(table, lambda one, two: one).to("rest", value=int)
    streams = log.start(app)
    caught_up(streams)
    assert [(r.key, r.value) for r in log.read("out")] == [("k", 8)]
    assert [(r.key, r.value) for r in log.read("rest")] == [("k", 5), (None, 6)]
    assert streams.metrics.total("dropped-records-total") == 3


def test_a_compacted_topic_refuses_them_with_the_way_out(log: Log) -> None:
    from tests.live.bad_input.kit import failure_of

    log.create("in")
    log.create("out", config={"cleanup.policy": "compact"})
    log.write("in", RECORDS)
    app = log.app("compacted")
    app.stream("in", key=str, value=int).to("out")
    failure = failure_of(log, app)
    assert "without a key cannot be written to a compacted topic" in failure.what
    for place in ("task 0_0", "KSTREAM-SINK-0000000001", "in-0 offset 1", "out-0"):
        assert place in failure.where
    again = log.app("compacted", production_exception_handler="continue")
    again.stream("in", key=str, value=int).to("out")
    run_to_the_end(log, again)
    assert [(r.key, r.value) for r in log.read("out")] == [("k", 1), ("k", 3)]

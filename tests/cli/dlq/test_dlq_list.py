"""``dlq list`` counts dead letters by step, error and source topic, and says what has become of them."""

from __future__ import annotations

import json

from pystreams.handlers import RawContent
from tests.cli.dlq.dlq_kit import bury, create, failure, too_late, whole


def test_letters_are_counted_by_step_error_and_source_topic(pystreams):
    create("orders", "returns", "dead")
    bury(
        failure(offset=1, timestamp=5_000),
        failure(offset=2, timestamp=1_000, error=KeyError("x")),
        failure(offset=3, timestamp=2_000),
        failure(offset=4, topic="returns"),
        too_late(b"1", offset=5),
    )
    assert pystreams("dlq", "list", "dead").lines == [
        "parse\tValueError\torders\t2\t0\t0\t1970-01-01T00:00:02Z\t1970-01-01T00:00:05Z",
        "count\tDroppedRecordError\torders\t1\t0\t0\t1970-01-01T00:00:01Z\t1970-01-01T00:00:01Z",
        "parse\tKeyError\torders\t1\t0\t0\t1970-01-01T00:00:01Z\t1970-01-01T00:00:01Z",
        "parse\tValueError\treturns\t1\t0\t0\t1970-01-01T00:00:01Z\t1970-01-01T00:00:01Z",
    ]


def test_options_choose_by_step_error_source_and_time(pystreams):
    create("orders", "dead")
    bury(
        failure(offset=1, timestamp=1_000),
        failure(offset=2, timestamp=2_000, step="other"),
        failure(offset=3, timestamp=3_000, error=KeyError("x")),
        failure(offset=4, timestamp=4_000, topic="returns"),
    )

    def chosen(*options: str) -> list[int]:
        lines = pystreams("dlq", "list", "dead", "--json", *options).lines
        return sorted(json.loads(line)["first_timestamp"] for line in lines)

    assert chosen("--step", "other") == [2_000]
    assert chosen("--error", "KeyError") == chosen("--error", "builtins.KeyError") == [3_000]
    assert chosen("--error", "Error") == []
    assert chosen("--source", "returns") == [4_000]
    assert chosen("--since", "1970-01-01T00:00:02Z", "--until", "4000") == [2_000, 3_000]
    assert chosen("--step", "parse", "--error", "ValueError", "--until", "2000") == [1_000]


def test_json_has_the_columns_of_the_table(pystreams):
    create("orders", "dead")
    bury(failure(offset=1))
    (line,) = pystreams("dlq", "list", "dead", "--json").lines
    assert json.loads(line) == {
        "step": "parse",
        "error": "builtins.ValueError",
        "source_topic": "orders",
        "letters": 1,
        "replayed": 0,
        "failed_again": 0,
        "first_timestamp": 1_000,
        "last_timestamp": 1_000,
    }


def test_what_was_replayed_and_what_failed_again_is_counted(pystreams):
    create("orders", "dead")
    bury(failure(offset=1), failure(b"three", offset=2))
    pystreams("dlq", "replay", "dead", "--yes")
    bury(failure(offset=3, headers=(("__pystreams.replays", b"1"),)))
    (line,) = pystreams("dlq", "list", "dead").lines
    assert line.split("\t")[3:6] == ["3", "2", "1"]


def test_what_cannot_be_replayed_is_named(pystreams):
    create("orders", "dead")
    pystreams("produce", "dead", stdin="something else\n")
    bury(
        failure(offset=1),
        failure(offset=2, content=RawContent.STORE),
        failure(offset=-1, partition=-1, topic=None, key=None, value=None, content=RawContent.NONE),
    )
    err = pystreams("dlq", "list", "dead").err
    assert "1 cannot be replayed, without the headers of a dead letter (__streams.errors.*)" in err
    assert "1 cannot be replayed, without the bytes of the input record" in err
    assert "1 cannot be replayed, without a source topic" in err


def test_letters_of_java_have_no_step(pystreams):
    create("orders", "dead")
    headers = [
        ["exception", "java.lang.RuntimeException"],
        ["topic", "orders"],
        ["partition", "0"],
        ["offset", "7"],
    ]
    record = {"key": "a", "value": "x", "headers": [[f"__streams.errors.{n}", v] for n, v in headers]}
    pystreams("produce", "dead", "--json", "--timestamp", "0", stdin=json.dumps(record) + "\n")
    (line,) = pystreams("dlq", "list", "dead", "--error", "RuntimeException").lines
    assert line.split("\t")[:4] == ["-", "RuntimeException", "orders", "1"]


def test_an_empty_topic_is_said_to_be_so(pystreams):
    create("dead")
    for command in (["list"], ["show"], ["replay"]):
        ended = pystreams("dlq", *command, "dead")
        assert (ended.code, ended.out, ended.err) == (0, "", "dead is empty.\n")


def test_options_that_choose_nothing_are_answered_with_what_there_is(pystreams):
    create("orders", "dead")
    bury(failure(offset=1), failure(offset=2, step="other", error=KeyError("x")))
    for command in (["list"], ["show"], ["replay"]):
        ended = pystreams("dlq", *command, "dead", "--step", "pares")
        assert (ended.code, ended.out) == (0, "")
        assert ended.err == (
            "None of the 2 dead letters in dead is chosen: they have the steps other, parse and the errors "
            "builtins.KeyError, builtins.ValueError.\n"
        )


def test_a_topic_that_does_not_exist_is_answered_with_the_nearest(pystreams):
    create("orders", "dead-orders")
    for command in (["list"], ["show"], ["replay"]):
        ended = pystreams("dlq", *command, "dead-order")
        assert ended.code == 4
        assert whole(ended.err) == (
            "Error: Topic dead-order does not exist\n"
            "  where: embedded log at .pystreams/log.db\n"
            "  why:   its topics: dead-orders, orders\n"
            "  next:  did you mean dead-orders, orders?\n"
        )


def test_a_topic_of_other_records_is_not_a_dead_letter_topic(pystreams):
    create("orders")
    pystreams("produce", "orders", stdin="a\nb\n")
    for command in (["list"], ["show"], ["replay", "--yes"]):
        ended = pystreams("dlq", *command, "orders")
        assert ended.code == 4
        assert whole(ended.err) == (
            "Error: orders is not a dead-letter topic\n"
            "  where: embedded log at .pystreams/log.db\n"
            "  why:   none of its 2 records has headers __streams.errors.*\n"
            "  next:  name the topic that the application has as errors_dead_letter_queue_topic_name\n"
        )


def test_a_time_that_is_none_is_refused(pystreams):
    create("dead")
    ended = pystreams("dlq", "list", "dead", "--since", "yesterday")
    assert ended.code == 2
    assert "'yesterday' is not a time" in ended.err

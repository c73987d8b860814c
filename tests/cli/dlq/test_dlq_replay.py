"""``dlq replay`` writes the input records of dead letters back, each once, and says what it leaves out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.handlers import RawContent, dead_letter_record
from tests.cli.dlq.dlq_kit import bury, create, failure, read, too_late, values, whole

REPLAYED_ONCE = ["__pystreams.replays", "1"]


def test_a_record_returns_as_it_was_to_where_it_was(pystreams):
    create("orders", partitions=3)
    create("dead", partitions=2)
    bury(
        failure(
            b"two", partition=2, offset=8, timestamp=7_000, headers=(("source", b"web"), ("source", None))
        )
    )
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert (ended.code, ended.out, ended.err) == (0, "1\tto orders\n", "Replayed 1 record to orders.\n")
    (record,) = read(pystreams, "orders")
    assert record == {
        "partition": 2,
        "offset": 0,
        "timestamp": 7_000,
        "key": "a",
        "value": "two",
        "headers": [["source", "web"], ["source", None], REPLAYED_ONCE],
    }


def test_records_return_in_the_order_in_which_they_came(pystreams):
    create("orders")
    create("dead", partitions=3)
    bury(*(failure(b"v%d" % n, offset=n, key=b"k%d" % (n % 7)) for n in range(40)))
    pystreams("dlq", "replay", "dead", "--yes")
    assert values(pystreams) == [f"v{n}" for n in range(40)]


def test_a_record_is_replayed_once_whichever_options_choose_it(pystreams):
    create("orders", "dead")
    bury(
        failure(b"a", offset=1, step="parse"),
        failure(b"b", offset=2, step="check"),
        failure(b"c", offset=3, step="check", error=KeyError("x")),
        failure(b"d", offset=4, step="parse"),
    )
    pystreams("dlq", "replay", "dead", "--yes", "--step", "check")
    assert values(pystreams) == ["b", "c"]
    assert pystreams("dlq", "replay", "dead", "--yes", "--error", "KeyError").err == (
        "Nothing is left to replay. Replayed before: 1.\n"
    )
    ended = pystreams("dlq", "replay", "dead", "--yes", "--error", "ValueError")
    assert ended.lines == ["2\tto orders", "1\tleft out: replayed before"]
    assert values(pystreams) == ["b", "c", "a", "d"]
    assert pystreams("dlq", "replay", "dead").err == "Nothing is left to replay. Replayed before: 4.\n"


def test_two_letters_of_one_record_are_one_replay(pystreams):
    """Two steps failed for it, or an application that processes at least once wrote its letter twice."""
    create("orders", "dead")
    bury(
        failure(b"a", offset=1, step="parse"), failure(b"a", offset=1, step="check"), failure(b"b", offset=2)
    )
    pystreams("dlq", "replay", "dead", "--yes", "--step", "parse")
    pystreams("dlq", "replay", "dead", "--yes")
    assert values(pystreams) == ["a", "b"]
    bury(failure(b"c", offset=3), failure(b"c", offset=3, step="check"))
    ended = pystreams("dlq", "replay", "dead", "--yes", "--since", "0")
    assert ended.lines == [
        "1\tto orders",
        "3\tleft out: replayed before",
        "1\tleft out: other letters of the same records",
    ]
    assert (ended.code, values(pystreams)) == (0, ["a", "b", "c"])


def test_a_record_of_another_topic_with_the_same_name_is_another_record(pystreams):
    create("orders", "dead")
    bury(failure(b"a", offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    pystreams("topics", "delete", "orders", "--yes")
    create("orders")
    bury(failure(b"b", offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    assert values(pystreams) == ["b"]


def test_equal_records_of_other_times_are_other_records(pystreams):
    """An internal topic begins at offset 0 again after a reset."""
    create("orders", "dead")
    bury(failure(b"a", offset=1, timestamp=1_000))
    pystreams("dlq", "replay", "dead", "--yes")
    bury(failure(b"a", offset=1, timestamp=2_000))
    pystreams("dlq", "replay", "dead", "--yes")
    assert [record["timestamp"] for record in read(pystreams, "orders")] == [1_000, 2_000]


def test_a_new_dead_letter_topic_has_nothing_replayed(pystreams):
    create("orders", "dead")
    bury(failure(b"a", offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    pystreams("topics", "delete", "dead", "--yes")
    create("dead")
    bury(failure(b"a", offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    assert values(pystreams) == ["a", "a"]


def test_a_record_that_fails_again_can_be_replayed_again_and_counts_its_replays(pystreams):
    create("orders", "dead")
    bury(failure(b"a", offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    bury(failure(b"a", offset=2, headers=(("h", b"1"), ("__pystreams.replays", b"1"))))
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert "1 of them failed again after a replay: has the application been corrected?" in ended.err
    assert [record["headers"] for record in read(pystreams, "orders")] == [
        [REPLAYED_ONCE],
        [["h", "1"], ["__pystreams.replays", "2"]],
    ]


def test_a_dead_letter_of_a_dead_letter_keeps_the_headers_of_the_first(pystreams):
    create("orders", "dead", "deader")
    inner = dead_letter_record(failure(b"a", offset=1))[3]
    bury(failure(b"a", topic="dead", offset=5, headers=inner, step="mend"), topic="deader")
    pystreams("dlq", "replay", "deader", "--yes")
    (record,) = read(pystreams, "dead")
    headers = dict(header[:2] for header in record["headers"])
    assert (headers["__streams.errors.topic"], headers["__streams.errors.step"]) == ("orders", "parse")
    pystreams("dlq", "replay", "dead", "--yes")
    assert values(pystreams) == ["a"]


def test_another_topic_gets_the_records_by_their_keys(pystreams):
    create("orders", "dead")
    create("again", partitions=4)
    keys = [b"k%d" % n for n in range(12)]
    bury(
        *(failure(key, key=key, offset=n) for n, key in enumerate(keys)),
        failure(b"no key", key=None, offset=12),
    )
    pystreams("dlq", "replay", "dead", "--to", "again", "--yes")
    pystreams("produce", "orders", "--key-separator", "=", stdin="")
    placed = {record["key"]: record["partition"] for record in read(pystreams, "again")}
    assert len(placed) == 13
    assert values(pystreams) == []
    create("reference", partitions=4)
    lines = "".join(f"{key.decode()}=x\n" for key in keys)
    pystreams("produce", "reference", "--key-separator", "=", stdin=lines)
    expected = {record["key"]: record["partition"] for record in read(pystreams, "reference")}
    assert {key: placed[key] for key in expected} == expected


def test_a_record_behind_a_repartition_topic_returns_to_its_partition_there(pystreams):
    create("shop-counts-repartition", partitions=4)
    create("dead")
    bury(failure(b"x", topic="shop-counts-repartition", partition=3, offset=5))
    pystreams("dlq", "replay", "dead", "--yes")
    (record,) = read(pystreams, "shop-counts-repartition")
    assert record["partition"] == 3


def test_a_dry_run_shows_the_plan_and_writes_nothing(pystreams):
    create("orders", "returns", "dead")
    bury(failure(offset=1), failure(offset=2), failure(offset=3, topic="returns"))
    ended = pystreams("dlq", "replay", "dead", "--dry-run")
    assert (ended.code, ended.lines) == (0, ["2\tto orders", "1\tto returns"])
    assert ended.err == "Nothing was written.\n"
    assert values(pystreams) == []
    assert len(pystreams("topics", "list", "--internal").lines) == 3


def test_it_asks_first(pystreams):
    create("orders", "dead")
    bury(failure(offset=1))
    refused = pystreams("dlq", "replay", "dead", stdin="n\n")
    assert refused.code == 1
    assert "Replay 1 record?" in refused.err
    assert values(pystreams) == []
    assert pystreams("dlq", "replay", "dead", stdin="y\n").code == 0
    assert values(pystreams) == ["two"]


def test_what_cannot_be_replayed_is_counted_in_the_last_line_and_the_exit_code(pystreams):
    create("orders", "dead")
    pystreams("produce", "dead", stdin="something else\n")
    bury(
        failure(offset=1), failure(offset=2, content=RawContent.TEXT), failure(offset=3, key=None, value=None)
    )
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == (
        "Replayed 1 record to orders. Left out: 1 without the headers of a dead letter (__streams.errors.*). Left "
        "out: 2 without the bytes of the input record, which was not at hand when the step failed."
    )
    assert values(pystreams) == ["two"]
    assert pystreams("dlq", "replay", "dead", "--yes", "--step", "parse").code == 1
    bury(failure(b"b", offset=4, step="check"))
    assert pystreams("dlq", "replay", "dead", "--yes", "--step", "check").code == 0


def test_of_late_records_it_says_that_they_will_be_late_again(pystreams):
    create("orders", "dead")
    bury(too_late(b"1", offset=1, late_ms=90_000), too_late(b"2", offset=2, late_ms=10), failure(offset=3))
    err = pystreams("dlq", "replay", "dead", "--dry-run").err
    assert "2 records were too late for step count. The same application will find them too late again" in err
    assert "(1 min 30 s was needed then, more is now)" in err
    assert "--to" in err
    assert "too late" not in pystreams("dlq", "replay", "dead", "--dry-run", "--step", "parse").err


def test_records_that_their_topic_deletes_soon_are_warned_of(pystreams):
    pystreams("topics", "create", "orders", "-c", "retention.ms=60000")
    create("dead")
    bury(failure(offset=1, timestamp=1_000))
    assert "orders will soon delete records of 1970-01-01T00:00:01Z" in (
        pystreams("dlq", "replay", "dead", "--dry-run").err
    )


def test_a_source_topic_that_is_gone_stops_the_replay_before_it_writes(pystreams):
    create("orders", "dead")
    bury(failure(offset=1), failure(offset=2, topic="gone"))
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == 4
    assert whole(ended.err) == (
        "Error: Topic gone does not exist\n"
        "  where: dead-0@1, which came from gone-0@2; embedded log at .pystreams/log.db\n"
        "  why:   its topics: dead, orders\n"
        "  next:  create it: pystreams topics create gone; or replay to another topic: --to TOPIC, and choose the "
        "letters with --source\n"
    )
    assert values(pystreams) == []
    assert pystreams("dlq", "replay", "dead", "--yes", "--source", "gone", "--to", "orders").code == 0
    assert values(pystreams) == ["two"]


def test_a_partition_that_is_gone_stops_the_replay_unless_keys_choose(pystreams):
    create("orders", partitions=2)
    create("dead")
    bury(failure(partition=5, offset=7))
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == 4
    assert whole(ended.err) == (
        "Error: orders has no partition 5 any more\n"
        "  where: dead-0@0, which came from orders-5@7\n"
        "  why:   the topic has 2 now, counted from 0: it was created again\n"
        "  next:  --by-key writes each record to the partition that its key's hash gives\n"
    )
    assert pystreams("dlq", "replay", "dead", "--yes", "--by-key").code == 0
    assert values(pystreams) == ["two"]


def test_a_target_that_does_not_exist_or_is_the_topic_itself_is_refused(pystreams):
    create("orders", "dead")
    bury(failure(offset=1))
    missing = pystreams("dlq", "replay", "dead", "--yes", "--to", "ordres")
    assert (missing.code, "did you mean orders" in missing.err) == (4, True)
    itself = pystreams("dlq", "replay", "dead", "--yes", "--to", "dead")
    assert (itself.code, "dead cannot be replayed to itself" in itself.err) == (2, True)


def test_a_record_that_its_topic_refuses_is_an_error_that_says_how_far_it_came(pystreams):
    create("orders", "dead")
    bury(failure(b"x" * 5_000, offset=1))
    pystreams("topics", "alter", "orders", "-c", "max.message.bytes=1000")
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == 1
    assert "is too large for its topic" in ended.err
    assert "replayed before the error: no records; the same command replays the others" in ended.err
    pystreams("topics", "alter", "orders", "-c", "max.message.bytes=100000")
    assert pystreams("dlq", "replay", "dead", "--yes").code == 0
    assert len(values(pystreams)) == 1


def test_a_second_replay_at_the_same_time_is_refused(pystreams):
    create("orders", "dead")
    bury(failure(offset=1))
    with (
        closing(EmbeddedBroker(Path(".pystreams/log.db"))) as broker,
        closing(broker.transactional_producer("other", "pystreams-replay-dead")),
    ):
        ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == 4
    assert whole(ended.err) == (
        "Error: another process is writing as pystreams-replay-dead\n"
        "  where: replay; embedded log at .pystreams/log.db\n"
        "  why:   the log allows one writer for each transactional id, and the other one is still running\n"
        "  next:  wait until it has ended, or stop it, then try again; replayed before the error: no records; the "
        "same command replays the others\n"
    )
    assert pystreams("dlq", "replay", "dead", "--yes").code == 0
    assert values(pystreams) == ["two"]


def test_a_reset_of_the_application_does_not_forget_what_was_replayed(pystreams, folder):
    (folder / "resets.py").write_text(
        'from pystreams import App\napp = App("__pystreams")\n'
        'app.stream("orders", key=str, value=str).group_by_key().count(name="c")\n',
        encoding="utf-8",
    )
    create("orders", "dead")
    bury(failure(offset=1))
    pystreams("dlq", "replay", "dead", "--yes")
    pystreams("run", "resets", "--until-caught-up")
    assert pystreams("reset", "resets", "--yes").code == 0
    assert (
        pystreams("dlq", "replay", "dead", "--yes").err == "Nothing is left to replay. Replayed before: 1.\n"
    )

"""What is wrong with topics is said before anything runs, with the command that mends it."""

from __future__ import annotations

from pystreams.app import App
from pystreams.broker.port import CommittedOffset
from pystreams.errors import OffsetOutOfRangeError, TopicError, TopologyError
from pystreams.ids import TopicPartition
from tests.live.start_checks_kit import counting, refused_with
from tests.live.support import Log, caught_up, eventually, run_to_the_end


def refused(log: Log, app: App) -> str:
    return refused_with((TopicError, TopologyError), log, app)


def test_missing_topics_are_named_with_the_command_that_creates_them(log: Log) -> None:
    message = refused(log, counting(log))
    assert "in (read), out (written)" in message
    assert "pystreams topics create in out;" in message


def test_a_missing_dead_letter_topic_is_named_too(log: Log) -> None:
    log.create("in", "out")
    app = counting(
        log, errors_dead_letter_queue_topic_name="dead", deserialization_exception_handler="dead_letter"
    )
    assert "dead (written)" in refused(log, app)


def test_joined_topics_of_different_width_are_refused(log: Log) -> None:
    log.create("s", partitions=2)
    log.create("t", partitions=3)
    app = log.app("joined")
    app.stream("s", key=str, value=int).join(
        app.table("t", key=str, value=int), lambda left, right: left + right
    ).foreach(lambda value: None)
    message = refused(log, app)
    assert "s has 2" in message
    assert "t has 3" in message


def test_an_internal_topic_of_another_width_is_refused_naming_both_widths(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.create("counting-counts-changelog", partitions=5, config={"cleanup.policy": "compact"})
    message = refused(log, counting(log))
    assert "counting-counts-changelog has 5 partitions, but the topology needs 2" in message


def test_a_changelog_that_would_lose_state_is_refused(log: Log) -> None:
    log.create("in", "out")
    log.create("counting-counts-changelog", config={"cleanup.policy": "delete"})
    assert "--config cleanup.policy=compact" in refused(log, counting(log))


def test_internal_topics_have_javas_names_and_settings(log: Log) -> None:
    log.create("in", "out", partitions=3)
    app = log.app("names", windowstore_changelog_additional_retention_ms=500)
    words = app.stream("in", key=str, value=str).group_by(lambda value: value, repartition="by-word")
    words.count(name="counts").to_stream().to("out")
    run_to_the_end(log, app)
    topics = log.admin.describe_topics()
    repartition, changelog = topics["names-by-word-repartition"], topics["names-counts-changelog"]
    assert (repartition.partitions, changelog.partitions) == (3, 3)
    assert (repartition.config["cleanup.policy"], repartition.config["retention.ms"]) == ("delete", "-1")
    assert changelog.config["cleanup.policy"] == "compact"
    assert changelog.config["message.timestamp.type"] == "CreateTime"


def test_a_committed_offset_that_the_log_no_longer_holds_stops_a_stateful_application(log: Log) -> None:
    log.create("in", "out")
    log.write("in", [("k", i, i) for i in range(10)])
    run_to_the_end(log, counting(log))
    partition = TopicPartition("in", 0)
    log.admin.set_group_offsets("counting", {partition: CommittedOffset(3)})
    log.admin.delete_records({partition: 6}).wait()
    streams = log.start(counting(log))
    eventually(lambda: streams.finished, "the failure")
    assert isinstance(streams.failure, OffsetOutOfRangeError)
    assert "committed offset 3 of in-0" in str(streams.failure)


def test_a_stateless_application_goes_on_after_the_gap(log: Log) -> None:
    log.create("in", "out")
    app = log.app("copy")
    app.stream("in", key=str, value=int).to("out")
    log.write("in", [("k", i, i) for i in range(10)])
    partition = TopicPartition("in", 0)
    log.admin.set_group_offsets("copy", {partition: CommittedOffset(3)})
    log.admin.delete_records({partition: 6}).wait()
    caught_up(log.start(app))
    assert [record.value for record in log.read("out")] == [6, 7, 8, 9]

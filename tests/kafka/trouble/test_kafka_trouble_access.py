"""A cluster that cannot be reached, or that forbids something: a clear error in time, and the documented exit code."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import KafkaSource
from pystreams.cli.terminal.exits import Exit
from pystreams.errors import BrokerError, StreamsError
from tests.backfill.kit import Backfill
from tests.backfill.live import append, create, published_manifest, raw
from tests.backfill.programs import history, word_count
from tests.kafka.backfill.test_backfill_versions import CHANGELOG, PAST, computed, program
from tests.kafka.server import ROOT, free_port
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import Counting, failure_of
from tests.live.support import caught_up, eventually, run_to_the_end


def run(address: str, *settings: str) -> tuple[int, str, float]:
    """Exit code, what was told and seconds of ``pystreams run``."""
    pairs = [part for setting in settings for part in ("-s", setting)]
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "pystreams", "run", "apps.wordcount", "--bootstrap-servers", address, *pairs],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return ended.returncode, ended.stderr, time.monotonic() - started


@contextmanager
def silent_listener() -> Iterator[str]:
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            # Closing alone does not wake who waits for a connection.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


def ends_with(outcome: tuple[int, str, float], *parts: str) -> None:
    code, told, seconds = outcome
    assert code == Exit.BROKER, told
    assert "Traceback" not in told
    for part in parts:
        assert part in told, told
    assert seconds < 60


def test_a_port_where_nobody_listens():
    ends_with(run(f"127.0.0.1:{free_port()}"), "cannot be reached", "Connection refused", "bootstrap_servers")


def test_a_name_that_does_not_resolve():
    ends_with(run("no-such-host.invalid:9092"), "not known", "bootstrap_servers")


def test_a_port_where_something_else_listens():
    with silent_listener() as address:
        ends_with(run(address), "Kafka", address, "security.protocol")


def test_a_plain_listener_that_is_spoken_to_in_tls(cluster: Cluster):
    ends_with(run(cluster.bootstrap_servers, "security_protocol=SSL"), "encrypted", "security.protocol")


# Forbidden things

Deny = Callable[[ResourceType, str, AclOperation], None]


@pytest.fixture
def deny(fragile: Cluster) -> Iterator[Deny]:
    """Forbids something to everybody, until the end of the test."""
    client = fragile.broker._client

    def deny(kind: ResourceType, name: str, operation: AclOperation) -> None:
        everybody, literal = "User:ANONYMOUS", ResourcePatternType.LITERAL
        # What has a rule is forbidden but for what is allowed.
        rules = ((AclOperation.ALL, AclPermissionType.ALLOW), (operation, AclPermissionType.DENY))
        acls = [AclBinding(kind, name, literal, everybody, "*", *rule) for rule in rules]
        for future in client.create_acls(acls).values():
            future.result()
        of_it = AclBindingFilter(kind, name, literal, None, None, AclOperation.ANY, AclPermissionType.ANY)
        eventually(lambda: len(client.describe_acls(of_it).result()) == len(acls), "the rules are in force")

    yield deny
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in client.delete_acls([every]).values():
        future.result()
    eventually(lambda: client.describe_acls(every).result() == [], "no ACL is left")


def fails_with(counting: Counting, *parts: str) -> None:
    """From the start, or while it runs."""
    try:
        failure: BaseException = failure_of(counting.start())
    except StreamsError as error:
        failure = error
    assert isinstance(failure, StreamsError), failure
    for part in parts:
        assert part in str(failure), failure


def test_a_topic_that_must_not_be_written_is_named(fragile: Cluster, deny: Deny):
    counting = Counting(fragile)
    counting.write(10)
    deny(ResourceType.TOPIC, "out", AclOperation.WRITE)
    fails_with(counting, "topic out", "WRITE on the topic", "ACL")


def test_a_topic_that_must_not_be_read_is_named(fragile: Cluster, deny: Deny):
    counting = Counting(fragile)
    counting.write(10)
    deny(ResourceType.TOPIC, "in", AclOperation.READ)
    fails_with(counting, "in-", "READ on the topic", "ACL")


def test_a_group_that_must_not_be_joined_is_named(fragile: Cluster, deny: Deny):
    counting = Counting(fragile)
    counting.write(10)
    deny(ResourceType.GROUP, "counting", AclOperation.READ)
    fails_with(counting, "group counting", "READ on the group", "ACL")


def test_internal_topics_that_must_not_be_created_are_named(fragile: Cluster, deny: Deny):
    counting = Counting(fragile)
    deny(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE)
    deny(ResourceType.TOPIC, "counting-counts-changelog", AclOperation.CREATE)
    fails_with(counting, "counting-counts-changelog", "CREATE", "ACL")


def test_topics_whose_settings_must_not_be_seen_are_used_and_those_of_others_are_left_alone(
    fragile: Cluster, deny: Deny, caplog: pytest.LogCaptureFixture
):
    counting = Counting(fragile)
    fragile.create("alien")
    for topic in ("alien", "out", "counting-counts-changelog"):
        deny(ResourceType.TOPIC, topic, AclOperation.DESCRIBE_CONFIGS)
    counting.write(10)
    for _ in range(2):
        # Its changelog is there at the second start.
        streams = counting.start()
        counting.check(streams)
        assert streams.close(30_000)
    assert "the settings of counting-counts-changelog, out are not checked" in caplog.text
    assert "alien" not in caplog.text


def test_a_permission_that_is_taken_away_under_an_application_stops_it_without_a_commit(
    fragile: Cluster, deny: Deny
):
    counting = Counting(fragile)
    counting.write(100)
    streams = counting.start()
    caught_up(streams)
    before = fragile.committed("counting")
    deny(ResourceType.TOPIC, "out", AclOperation.WRITE)
    counting.write(100)
    assert "WRITE on the topic" in str(failure_of(streams))
    assert fragile.committed("counting") == before


def test_the_exit_code_of_a_forbidden_group_is_the_brokers(fragile: Cluster, deny: Deny):
    fragile.create("lines", "word-counts")
    deny(ResourceType.GROUP, "wordcount", AclOperation.READ)
    ends_with(run(fragile.bootstrap_servers, f"state_dir={fragile.path}/state"), "group wordcount", "ACL")


@pytest.mark.parametrize(
    "kind, name, told",
    [
        (ResourceType.TOPIC, "wc-counts-changelog", "WRITE on the topic"),
        (ResourceType.TRANSACTIONAL_ID, "wc-backfill-counts-0", "on the transactional id"),
        (ResourceType.GROUP, "wc", "READ on the group"),
    ],
)
def test_a_hand_over_that_is_forbidden_leaves_the_application_sound(
    kind: ResourceType, name: str, told: str, fragile: Cluster, deny: Deny
):
    """Found out before it is told: then the application would not start before the hand-over is complete."""
    past = history("word count", 1, 1)
    later = {"lines": [[line._replace(timestamp=1_000 + line.timestamp) for line in past["lines"][0]]]}
    create(fragile, later, ["word-counts"])
    append(fragile, later)
    source = KafkaSource(fragile.bootstrap_servers)
    result = Backfill(word_count(state_dir=fragile.path), source, fragile.path / "staging").run()
    operation = AclOperation.READ if kind is ResourceType.GROUP else AclOperation.WRITE
    deny(kind, name, operation)
    with pytest.raises(BrokerError, match=told):
        hand_over(result, fragile.broker)
    assert published_manifest(fragile.broker, "wc") is None


@pytest.mark.parametrize("operation", [AclOperation.DELETE, AclOperation.CREATE])
def test_a_changelog_of_versions_that_must_not_be_made_anew_is_found_out_before_anything_is_changed(
    operation: AclOperation, fragile: Cluster, deny: Deny
):
    create(fragile, PAST, ["sums"])
    append(fragile, PAST)
    run_to_the_end(fragile, program(fragile))
    before = raw(fragile, CHANGELOG)
    result = computed(fragile, "staging")
    deny(ResourceType.TOPIC, CHANGELOG.topic, operation)
    if operation is AclOperation.CREATE:
        # Whoever may create topics anywhere may create this one.
        deny(ResourceType.BROKER, "kafka-cluster", operation)
    with pytest.raises(BrokerError, match=f"{operation.name} on the topic"):
        hand_over(result, fragile.broker)
    assert published_manifest(fragile.broker, "versions") is None
    assert raw(fragile, CHANGELOG) == before

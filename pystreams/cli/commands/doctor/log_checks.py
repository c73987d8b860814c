"""Checks of the log, and of what the application has there: topics, settings, last run, group."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Final, cast

from pystreams.cli.commands.doctor.finding import Finding, good, remark, warnings_of
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError
from pystreams.nearest import listing
from pystreams.plural import counted
from pystreams.topics.topic_plan import TopicPlan, plan_topics

if TYPE_CHECKING:
    from pystreams.broker.kafka.admin import KafkaAdmin
    from pystreams.broker.port import Admin, Broker
    from pystreams.config import StreamsConfig
    from pystreams.topology.built import BuiltTopology

_CONNECT_TIMEOUT_S: Final = 5.0
#: Records that are further in the future have a wrong clock somewhere.
_FUTURE_MS: Final = 300_000
#: Clocks that are further apart are not synchronized.
_CLOCKS_APART_MS: Final = 2_000
#: From these versions of Apache Kafka on.
_EXACTLY_ONCE: Final = (3, 0)
_BROKER_ASSIGNS: Final = (4, 2)


def addresses(config: StreamsConfig) -> Iterator[Finding]:
    """Whether each address of ``bootstrap_servers`` can be reached. Raises ``BrokerUnavailableError`` if none can."""
    assert config.bootstrap_servers is not None
    clock = SystemClock()
    reached = []
    failed = []
    for address in config.bootstrap_servers.split(","):
        host, _, port = address.strip().rpartition(":")
        began_ms = clock.monotonic_ms()
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
        except (OSError, ValueError) as error:
            failed.append(f"{address} ({error})")
        else:
            reached.append(f"{address} in {clock.monotonic_ms() - began_ms:.0f} ms")
    if not reached:
        raise BrokerUnavailableError(
            "No address of bootstrap_servers can be reached",
            why="; ".join(failed),
            hint="is it the right address? Within a container, localhost is the container itself",
        )
    yield good("addresses", f"connected to {', '.join(reached)}")
    if failed:
        yield remark("addresses", f"cannot be reached: {'; '.join(failed)}", "correct bootstrap_servers")


def cluster(admin: Admin, broker: Broker, config: StreamsConfig) -> Iterator[Finding]:
    """The log, and whether it supports the settings."""
    if not config.on_kafka:
        yield good("log", broker.description)
        return
    facts = cast("KafkaAdmin", admin).cluster()
    version = ".".join(map(str, facts.version))
    yield good("log", f"{broker.description}, {counted(facts.brokers, 'broker')}, Kafka {version} or later")
    if config.processing_guarantee == "exactly_once_v2" and facts.version < _EXACTLY_ONCE:
        yield remark(
            "log",
            "exactly_once_v2 needs Kafka 3.0",
            "update the brokers, or set processing_guarantee=at_least_once",
        )
    if config.group_protocol == "streams" and facts.version < _BROKER_ASSIGNS:
        yield remark(
            "log",
            "group_protocol=streams needs Kafka 4.2",
            "update the brokers, or set group_protocol=classic",
        )
    if facts.brokers < 3:
        yield remark(
            "log",
            "with less than three brokers, a lost broker is lost data",
            "run three, with replication_factor=3 and min.insync.replicas=2",
        )


def topics(
    admin: Admin, built: BuiltTopology, config: StreamsConfig, broker: Broker
) -> Iterator[Finding | TopicPlan]:
    """The topics of the application, and last the plan. Raises ``TopicError``, ``TopologyError``."""
    with warnings_of("pystreams") as warned:
        plan = plan_topics(admin, built, config, broker.description)
    tasks = len(plan.partitioning.tasks)
    own = len(built.internal_topics) + sum(len(sub.changelogs) for sub in built.subtopologies)
    missing = f", of which it creates {len(plan.missing)} at its start" if plan.missing else ""
    yield good(
        "topics",
        f"all are there that it reads and writes; {counted(tasks, 'task')}; {counted(own, 'own topic')}{missing}",
    )
    for message in warned.messages:
        yield remark("topics", message)
    yield plan


def retention(
    plan: TopicPlan, admin: Admin, built: BuiltTopology, config: StreamsConfig, broker: Broker
) -> Iterator[Finding]:
    """Whether topics would delete the written records. Raises ``RetentionError``."""
    from pystreams.runtime.startup.retention_check import check_retention

    with (
        closing(broker.consumer(f"{built.application_id}-doctor")) as consumer,
        warnings_of("pystreams") as warned,
    ):
        check_retention(plan, built, config, admin, consumer, SystemClock())
    for message in warned.messages:
        yield remark("retention", message)
    if not warned.messages:
        yield good("retention", "no topic deletes what the application is about to write")


def last_run(admin: Admin, built: BuiltTopology, config: StreamsConfig, broker: Broker) -> Iterator[Finding]:
    """Whether stored content fits the program. Raises ``TopologyError`` where some would be lost."""
    from pystreams.runtime.startup.client_take_over import ClientTakeOver
    from pystreams.state.disk.directory import StateDirectory

    directory = StateDirectory(config.state_dir, config.application_id)
    with warnings_of("pystreams") as warned:
        ClientTakeOver(built, config, broker, admin, directory, SystemClock()).check()
    for message in warned.messages:
        yield remark("last run", message)
    if not warned.messages:
        yield good("last run", "nothing that it has stored would be lost")


def group(admin: Admin, built: BuiltTopology, config: StreamsConfig, broker: Broker) -> Iterator[Finding]:
    """The threads that run the application now."""
    from pystreams.runtime.group.application_status import application_status

    status = application_status(
        admin, built, config.auto_offset_reset, reads_committed=broker.reads_committed
    )
    waiting = f"lag: {counted(status.lag, 'record')}"
    if not status.members:
        yield good("group", f"nobody runs it now; {waiting}")
        return
    others = [member.thread for member in status.members if member.same_program is False]
    if others:
        yield remark(
            "group",
            f"another version of the program runs in {listing(others)}",
            "pystreams diff says whether the versions can run beside each other",
        )
    yield good("group", f"run now by {counted(len(status.members), 'thread')}; {waiting}")


def broker_clock(admin: Admin, config: StreamsConfig) -> Iterator[Finding]:
    """Whether this machine's clock and the cluster's agree: punctuators and windows of wall-clock time go by the one,
    retention and timestamps of append by the other."""
    if not config.on_kafka:
        return
    clock = SystemClock()
    before_ms = clock.now_ms()
    theirs_ms = cast("KafkaAdmin", admin).clock_ms()
    after_ms = clock.now_ms()
    if theirs_ms is None:
        return
    # The broker may have read its clock at any time between the request and the answer.
    apart_ms = max(before_ms - theirs_ms, theirs_ms - after_ms, 0)
    if apart_ms <= _CLOCKS_APART_MS:
        yield good(
            "clocks",
            f"this machine's clock and the cluster's are less than {_CLOCKS_APART_MS / 1000:g} s apart",
        )
        return
    side = "behind" if theirs_ms > after_ms else "ahead of"
    yield remark(
        "clocks",
        f"this machine's clock is {apart_ms / 1000:,.0f} s {side} the cluster's",
        "records that this machine stamps come too early or too late for windows: synchronize both (NTP)",
    )


def clocks(plan: TopicPlan, admin: Admin) -> Iterator[Finding]:
    """Whether input records are from the future: stream time would run ahead, and drop others as late."""
    inputs = [
        partition
        for partition in {one for partitions in plan.partitioning.tasks.values() for one in partitions}
        if partition.topic in plan.existing
    ]
    limit_ms = SystemClock().now_ms() + _FUTURE_MS
    found, ends = admin.offsets_for_times(dict.fromkeys(inputs, limit_ms)), admin.end_offsets(inputs)
    early = sorted(partition for partition in inputs if found[partition] < ends[partition])
    if early:
        where = listing([f"{one} from offset {found[one]}" for one in early])
        yield remark(
            "clocks",
            f"records are from the future: {where}",
            "windows close too early and drop records: is a clock wrong, or are timestamps not milliseconds?",
        )
    else:
        yield good("clocks", "no input record is from the future")

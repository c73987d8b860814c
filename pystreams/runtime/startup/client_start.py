"""Prepares a client before its first thread runs: checks, creates topics, opens the state directory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing

from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.tracing import Tracing
from pystreams.errors import TopicError
from pystreams.metrics import Metrics
from pystreams.runtime.catching_up.group_watch import watch_of
from pystreams.runtime.recovery.neighbours import neighbours_of
from pystreams.runtime.restoring.restore_listener import RestoreListener
from pystreams.runtime.snapshots.client_snapshots import snapshots_of
from pystreams.runtime.startup.client_take_over import ClientTakeOver
from pystreams.runtime.startup.retention_check import check_retention
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.state_cleanup import StateCleanup
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.open_files import allow_open_files
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.disk.worker_number import WorkerNumber
from pystreams.take_over.hand_over_record import HandOverCheck, state_origin
from pystreams.topics.topic_plan import plan_topics
from pystreams.topology.built import BuiltTopology
from pystreams.topology.circles import circles, in_words

log = logging.getLogger(__name__)


def prepare(
    built: BuiltTopology,
    config: StreamsConfig,
    broker: Broker,
    admin: Admin,
    clock: Clock,
    metrics: Metrics,
    restore_listener: RestoreListener | None,
    tracing: Tracing | None,
    worker: int | None,
) -> ClientContext:
    """Run all checks, and build everything that threads share. ``worker`` is the number that a supervisor has
    given to the client.

    Raises ``TopicError``, ``RetentionError``, ``TopologyError`` (also where stored content would be lost),
    ``ConfigError``, ``StateError``.
    """
    _check_settings(config, broker)
    hand_over = HandOverCheck(broker, admin, built, clock)
    hand_over.check()
    directory = StateDirectory(config.state_dir, config.application_id)
    with ExitStack() as to_undo:
        number = WorkerNumber(directory.path, worker or 1)
        to_undo.callback(number.release)
        # Early, because other clients may wait until this one announces its static members.
        neighbours = neighbours_of(
            broker, admin, directory, config, clock, number.number, supervised=worker is not None
        )
        if neighbours is not None:
            to_undo.callback(neighbours.close)
        take_over = ClientTakeOver(built, config, broker, admin, directory, clock)
        take_over.check()
        plan = plan_topics(admin, built, config, broker.description, take_over.topics_made_anew)
        with closing(broker.consumer(f"{config.application_id}-retention-check")) as consumer:
            check_retention(plan, built, config, admin, consumer, clock)
        cleanup = StateCleanup(directory, config.state_cleanup_delay_ms, clock)
        cleanup.at_start(config.state_cleanup_dir_max_age_ms)
        in_use = take_over.carry_out(plan)
        if worker in (None, 1):  # the others have the same program
            _warn_of_circles(built)
        allow_open_files()
        resources = _resources(built, config, broker, len(plan.partitioning.tasks))
        inputs = {task: frozenset(partitions) for task, partitions in plan.partitioning.tasks.items()}
        context = ClientContext(
            built=built,
            config=config,
            broker=broker,
            admin=admin,
            clock=clock,
            metrics=metrics,
            directory=directory,
            cleanup=cleanup,
            hand_over=hand_over,
            in_use=in_use,
            resources=resources,
            process_id=directory.process_id,
            worker=number,
            neighbours=neighbours,
            inputs=inputs,
            partition_count=partition_counter(admin, plan.partition_counts),
            watch=watch_of(built, config, inputs, admin, clock, metrics, transactional=broker.transactional),
            restore_listener=restore_listener,
            tracing=tracing,
            snapshots=snapshots_of(
                config,
                built,
                admin,
                directory,
                resources,
                clock,
                metrics,
                lambda: state_origin(broker, hand_over.attempt),
                in_use.beginning,
            ),
        )
        to_undo.pop_all()
    return context


def _check_settings(config: StreamsConfig, broker: Broker) -> None:
    """The settings that depend on the log: a given broker may be another one than the settings name."""
    config.check_guarantee(transactional=broker.transactional)
    if broker.assigns_tasks:
        config.check_group_protocol()


def _warn_of_circles(built: BuiltTopology) -> None:
    for circle in circles(built.subtopologies):
        log.warning("%s", in_words(circle))


def _resources(built: BuiltTopology, config: StreamsConfig, broker: Broker, tasks: int) -> RocksResources:
    """The resources that the databases of the client share. Logs what starts, and with how much memory."""
    resources = RocksResources(config.rocksdb_block_cache_bytes, config.rocksdb_write_buffer_bytes)
    log.info(
        "application %s on %s: %d sub-topologies, %d tasks; %s",
        built.application_id,
        broker.description,
        len(built.subtopologies),
        tasks,
        resources.summary(config.statestore_cache_max_bytes, config.statestore_uncommitted_max_bytes),
    )
    return resources


def partition_counter(admin: Admin, known: dict[str, int]) -> Callable[[str], int]:
    """The number of partitions of a topic; asks the log about topics that were chosen at run time."""

    def partition_count(topic: str) -> int:
        count = known.get(topic)
        if count is None:
            found = admin.describe_topics([topic])
            if topic not in found:
                raise TopicError(
                    f"topic {topic} does not exist",
                    why="the application writes a record to it, and it creates only its internal topics",
                    hint=f"create it: pystreams topics create {topic}",
                )
            count = known[topic] = found[topic].partitions
        return count

    return partition_count

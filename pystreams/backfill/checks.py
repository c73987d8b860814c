"""What can be refused of a hand-over before anything is written, and for the most part before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Protocol

from pystreams.backfill.application import Loaded
from pystreams.backfill.manifest import InputRange, Manifest
from pystreams.backfill.plan import Plan
from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock, SystemClock
from pystreams.errors import BrokerError, OffsetOutOfRangeError, RetentionError, StateError, TopicError
from pystreams.ids import TopicPartition
from pystreams.runtime.retention_check import time_limits
from pystreams.runtime.topic_setup import TopicPlan, plan_topics


class Cut(Protocol):
    """A backfill that was planned and cut, computed or not: ``Planned``, ``BackfillResult``."""

    @property
    def loaded(self) -> Loaded: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def manifest(self) -> Manifest: ...


def check_target(cut: Cut, broker: Broker, clock: Clock | None = None) -> None:
    """Whether what comes of a backfill can be handed over to this log. Whether changelogs would delete it shows only
    once it is computed.

    Raises what ``hand_over`` raises before it writes anything.
    """
    with closing(broker.admin()) as admin:
        checked_topics(cut, broker, admin, clock or SystemClock())


def checked_topics(cut: Cut, broker: Broker, admin: Admin, clock: Clock) -> TopicPlan:
    """The topics of the application, after all checks."""
    manifest, where = cut.manifest, broker.description
    _require_offsets(manifest)
    require_no_members(admin, cut.plan.application_id, where)
    _check_cut(manifest, admin, where)
    topics = plan_topics(admin, cut.loaded.built, cut.loaded.config, where)
    _check_retention(cut, topics, clock.now_ms())
    return topics


def require_no_members(admin: Admin, application_id: str, where: str) -> None:
    """Raises ``BrokerError`` while an application runs."""
    members = admin.group_members(application_id)
    if members:
        raise BrokerError(
            f"the application {application_id} is running, so nothing can be handed over to it",
            where=where,
            why=f"its group has {len(members)} member(s): {', '.join(sorted(members)[:3])}",
            hint="stop all its instances, then try again",
        )


def _require_offsets(manifest: Manifest) -> None:
    if manifest.approximate:
        raise StateError(
            "the backfill's sources knew no offsets, so no live application can go on behind it",
            where=f"application {manifest.application_id}, backfill {manifest.backfill_id}",
            hint="backfill from the log, or from an archive that has the offsets of its records",
        )


def _check_cut(manifest: Manifest, admin: Admin, where: str) -> None:
    inputs = {input.partition: input for input in manifest.inputs}
    _require_topics(admin, inputs, where)
    beginnings, ends = admin.beginning_offsets(list(inputs)), admin.end_offsets(list(inputs))
    for partition, input in inputs.items():
        if not beginnings[partition] <= input.end <= ends[partition]:
            raise OffsetOutOfRangeError(
                f"the cut of {partition} is at offset {input.end}, where the live application cannot go on",
                where=where,
                why=f"the log holds offsets {beginnings[partition]} to {ends[partition]} (exclusive)",
                hint="backfill up to an offset that is still there",
            )


def _require_topics(admin: Admin, inputs: Mapping[TopicPartition, InputRange], where: str) -> None:
    counts = admin.partition_counts()
    for partition in inputs:
        count = counts.get(partition.topic, 0)
        if partition.partition >= count:
            raise TopicError(
                f"{partition}, which is backfilled, is not where the live application would go on",
                where=where,
                why=f"topic {partition.topic} has {count} partitions there"
                if count
                else "there is no such topic",
                hint="hand over to the log that the history comes from",
            )


def _check_retention(cut: Cut, topics: TopicPlan, now_ms: int) -> None:
    limits = time_limits(topics, cut.loaded.built, None)
    for one in cut.plan.slices:
        computed = cut.manifest.slices.get(one.index)
        for store, changelog in one.stores.items():
            if computed is None or not one.final or changelog not in limits:
                continue
            oldest_ms = computed.stores[store].oldest_ms
            if oldest_ms is not None and now_ms - oldest_ms > limits[changelog]:
                raise RetentionError(
                    f"changelog {changelog} would delete what is handed over right after it is written",
                    why=f"its retention.ms is {limits[changelog]}, an entry of {store} is {now_ms - oldest_ms} ms old",
                    hint=f"pystreams topics alter {changelog} --config retention.ms=-1, or set "
                    "window_changelog_retention_ms=-1 if the topic does not exist yet",
                )

"""Hands a computed backfill over to the live application: its stores as changelogs, then its offsets.

    check      no member in the group, topics as the topology needs them, retention long enough
    publish    each store partition: last value per key, tombstones for what an earlier run left; one transaction each
    commit     the group's offsets with their metadata; the application goes on at the cut

The manifest goes along in a topic of its own: ``computed`` before the first change is published, ``committed`` at the
end, so that whoever finds it knows whether the hand-over is whole. Handing over twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

from pystreams.backfill.manifest import InputRange, Manifest, Stage
from pystreams.backfill.plan import Slice
from pystreams.backfill.records import Arrow, pc
from pystreams.backfill.result import BackfillResult
from pystreams.backfill.sources import BATCH_ROWS, read_log
from pystreams.broker.port import Admin, Broker, Producer, TopicSpec
from pystreams.clock import Clock, SystemClock
from pystreams.errors import BrokerError, OffsetOutOfRangeError, RetentionError, StateError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.runtime.retention_check import time_limits
from pystreams.runtime.topic_setup import TopicPlan, plan_topics

log = logging.getLogger(__name__)

MANIFEST_KEY = b"manifest"

_MANIFEST_TOPIC = {"cleanup.policy": "compact", "retention.ms": "-1"}


def manifest_topic(application_id: str) -> str:
    """Where the manifest of an application's last hand-over is."""
    return f"{application_id}-backfill-manifest"


def hand_over(result: BackfillResult, broker: Broker, clock: Clock | None = None) -> Manifest:
    """Publish and commit. Gives the manifest as it is then, which is also in the staging folder.

    Raises ``BrokerError`` while the group has members, ``TopicError`` for topics that do not fit, ``RetentionError``
    where a changelog would delete what it is given, ``OffsetOutOfRangeError`` for a cut that the log does not hold,
    ``StateError`` for a backfill that is not computed.
    """
    return _HandOver(result, broker, clock or SystemClock()).run()


class _HandOver:
    def __init__(self, result: BackfillResult, broker: Broker, clock: Clock) -> None:
        self._result = result
        self._broker = broker
        self._clock = clock
        self._application_id = result.plan.application_id

    def run(self) -> Manifest:
        result, manifest = self._result, self._result.manifest
        if manifest.stage is Stage.CUT:
            raise StateError("the backfill is not computed yet", hint="run it again with resume")
        with ExitStack() as stack:
            admin = stack.enter_context(closing(self._broker.admin()))
            self._require_empty_group(admin)
            self._check_cut(admin)
            topics = plan_topics(admin, result.loaded.built, result.loaded.config, self._broker.description)
            self._check_retention(topics)
            own_topic = TopicSpec(manifest_topic(self._application_id), 1, _MANIFEST_TOPIC)
            admin.create_topics([*topics.missing, own_topic])
            self._tell(replace(manifest, stage=Stage.COMPUTED))
            for one, store, changelog in self._stores():
                for task in range(one.tasks):
                    self._publish(one, task, store, TopicPartition(changelog, task))
            manifest = replace(manifest, stage=Stage.PUBLISHED)
            manifest.write(result.staging.path)
            self._require_empty_group(admin)
            internal = [
                TopicPartition(name, partition)
                for name, count in topics.partitioning.repartition_topics.items()
                for partition in range(count)
            ]
            admin.set_group_offsets(self._application_id, result.offsets(admin.end_offsets(internal)))
            manifest = manifest.advanced(Stage.COMMITTED)
            self._tell(manifest)
            manifest.write(result.staging.path)
        return manifest

    # Checks

    def _require_empty_group(self, admin: Admin) -> None:
        members = admin.group_members(self._application_id)
        if members:
            raise BrokerError(
                f"the application {self._application_id} is running, so nothing can be handed over to it",
                where=self._broker.description,
                why=f"its group has {len(members)} member(s): {', '.join(sorted(members)[:3])}",
                hint="stop all its instances, then hand over again",
            )

    def _check_cut(self, admin: Admin) -> None:
        inputs = {input.partition: input for input in self._result.manifest.inputs}
        beginnings, ends = admin.beginning_offsets(list(inputs)), admin.end_offsets(list(inputs))
        for partition, input in inputs.items():
            if not beginnings[partition] <= input.end <= ends[partition]:
                raise OffsetOutOfRangeError(
                    f"the cut of {partition} is at offset {input.end}, where the live application cannot go on",
                    where=self._broker.description,
                    why=f"the log holds offsets {beginnings[partition]} to {ends[partition]} (exclusive)",
                    hint="backfill up to an offset that is still there",
                )

    def _check_retention(self, topics: TopicPlan) -> None:
        limits = time_limits(topics, self._result.loaded.built, None)
        now_ms = self._clock.now_ms()
        for one, store, changelog in self._stores():
            oldest = min(
                (
                    pc.min(rows.column("timestamp")).as_py()
                    for task in range(one.tasks)
                    for rows in self._rows(one, task, store)
                ),
                default=now_ms,
            )
            if changelog in limits and now_ms - oldest > limits[changelog]:
                raise RetentionError(
                    f"changelog {changelog} would delete what is handed over right after it is written",
                    why=f"its retention.ms is {limits[changelog]}, an entry of {store} is {now_ms - oldest} ms old",
                    hint=f"pystreams topics alter {changelog} --config retention.ms=-1, or set "
                    "window_changelog_retention_ms=-1 if the topic does not exist yet",
                )

    # Publishing

    def _stores(self) -> Iterator[tuple[Slice, str, str]]:
        """The stores that have changelogs, each at the last visit of its sub-topology."""
        for one in self._result.plan.slices:
            for store, changelog in one.stores.items():
                if one.final and changelog is not None:
                    yield one, store, changelog

    def _rows(self, one: Slice, task: int, store: str) -> Iterator[Arrow]:
        return self._result.staging.state(one.index, task, store, BATCH_ROWS)

    def _publish(self, one: Slice, task: int, store: str, changelog: TopicPartition) -> None:
        transactional_id = f"{self._application_id}-backfill-{store}-{task}"
        with closing(self._broker.producer("backfill", transactional_id)) as producer:
            # Read once the producer is there: nobody else's transaction can be open any more.
            left = self._last_values(changelog)
            written = skipped = 0
            for rows in self._rows(one, task, store):
                columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
                for key, value, timestamp in zip(*columns, strict=True):
                    if left.pop(key, None) == (value, timestamp):
                        skipped += 1
                        continue
                    producer.log_change(*changelog, key, value, timestamp, NO_HEADERS)
                    written += 1
            for key in left:
                producer.log_change(*changelog, key, None, self._result.manifest.cut_time_ms, NO_HEADERS)
            producer.commit({}, None)
        log.info("%s: %d written, %d unchanged, %d deleted", changelog, written, skipped, len(left))

    def _last_values(self, changelog: TopicPartition) -> dict[bytes, tuple[bytes, int]]:
        """What the changelog holds already, compacted."""
        with closing(self._broker.admin()) as admin:
            start = admin.beginning_offsets([changelog])[changelog]
            end = admin.end_offsets([changelog])[changelog]
        last: dict[bytes, tuple[bytes, int]] = {}
        for rows in read_log(self._broker, InputRange(changelog, start, end)):
            columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
            for key, value, timestamp in zip(*columns, strict=True):
                last.pop(key, None)
                if value is not None:
                    last[key] = (value, timestamp)
        return last

    def _tell(self, manifest: Manifest) -> None:
        producer: Producer
        topic = manifest_topic(self._application_id)
        with closing(
            self._broker.producer("backfill", f"{self._application_id}-backfill-manifest")
        ) as producer:
            text = manifest.to_json().encode()
            producer.send(topic, 0, MANIFEST_KEY, text, self._clock.now_ms(), NO_HEADERS)
            producer.commit({}, None)


def published_manifest(broker: Broker, application_id: str) -> Manifest | None:
    """The manifest of the last hand-over to an application, None if there was none."""
    partition = TopicPartition(manifest_topic(application_id), 0)
    with closing(broker.admin()) as admin:
        if partition.topic not in admin.describe_topics([partition.topic]):
            return None
        start = admin.beginning_offsets([partition])[partition]
        end = admin.end_offsets([partition])[partition]
    last: bytes | None = None
    for rows in read_log(broker, InputRange(partition, start, end)):
        last = rows.column("value").to_pylist()[-1] if rows.num_rows else last
    return None if last is None else Manifest.from_json(last.decode(), str(partition))

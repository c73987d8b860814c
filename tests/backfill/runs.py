"""Runs of random topologies: backfills and live applications over one log, and all that they leave there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import digits
from typing import Any

from pystreams.backfill.compute.backfill_result import BackfillResult, SinkRecord
from pystreams.backfill.sources import EmbeddedSource
from pystreams.config import StreamsConfig
from pystreams.engine.global_state import GLOBAL_TASK
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.runtime.streams import Streams
from pystreams.state.spec import StoreSpec
from tests.backfill.against_java import writers_of
from tests.backfill.kit import Backfill
from tests.backfill.live import BUFFERS, raw, sink_record, visible
from tests.backfill.trials import Trial
from tests.backfill.versions import shown_versions
from tests.live.support import TIMEOUT_S, Log, caught_up

#: Few, so that there are many commits.
COMMIT_RECORDS = 5


def create(log: Log, trial: Trial, sinks: Iterable[str]) -> None:
    have = log.admin.partition_counts()
    topics = dict.fromkeys([*trial.history, *sinks, *_choosable(trial)])
    log.create(*(topic for topic in topics if topic not in have), partitions=trial.partitions)


def _choosable(trial: Trial) -> set[str]:
    """Topics that records may choose in another order of what has no order, and did not in the backfill."""
    prefixes = [s.get("topic_prefix", "") for s in trial.scenario["steps"] if "topic_fn" in s]
    lines = (line for of_topic in trial.history.values() for lines in of_topic for line in lines)
    letters = {
        text[:1].decode() for line in lines for text in line[:2] if text is not None and text.isascii()
    }
    # Keys may be lengths and counts.
    first = {*digits, *(letter for letter in letters if letter.isalnum())}
    return {prefix + letter for prefix in prefixes for letter in first}


def sinks_of(whole: BackfillResult) -> list[str]:
    """The topics outside that are written, by name or chosen by record."""
    named = {topic for one in whole.plan.slices for topic in one.sinks}
    return sorted(named | {partition.topic for partition in whole.written()})


def backfilled(trial: Trial, log: Log, staging: Path, **given: Any) -> BackfillResult:
    """Inline, of what is on an embedded log."""
    source = EmbeddedSource(str(log.path / "log.db"))
    settings = {**trial.settings, "state_dir": log.path / "state"}
    return Backfill(
        trial.topology(), source, staging, commit_records=COMMIT_RECORDS, **given, **settings
    ).run()


def live(log: Log, trial: Trial) -> dict[str, Any]:
    """Run until all is processed, and stop. What its stores showed then, and how many records it has dropped."""
    config = StreamsConfig.of(**trial.settings, state_dir=log.path / "state")
    streams = Streams(trial.topology(), config, broker=log.broker)
    streams.start()
    try:
        caught_up(streams)
        # What a buffer holds back nobody may read; its changelog is compared.
        specs = [spec for spec in streams._built.stores if spec.kind not in BUFFERS]
        stores = {spec.name: _content(streams, spec) for spec in specs}
        return {"stores": stores, "dropped": _dropped(streams)}
    finally:
        assert streams.close(1000 * TIMEOUT_S)


def _content(streams: Streams, spec: StoreSpec) -> list[str]:
    store = streams.store(spec.name)
    if spec.kind != "versioned":
        return sorted(map(repr, store.all()))
    of_tasks = store.query(lambda one: sorted(one.logged(), key=lambda entry: entry[2]))
    return sorted(repr(version) for logged in of_tasks for version in shown_versions(spec, logged))


def _dropped(streams: Streams) -> int:
    """By tasks: how much of a global topic a process reads depends on what it finds on its disk."""
    samples = (sample for sample in streams.metrics.snapshot() if sample.name == DROPPED_RECORDS)
    return int(sum(sample.value for sample in samples if ("task_id", str(GLOBAL_TASK)) not in sample.tags))


def left_behind(
    log: Log, trial: Trial, whole: BackfillResult, left: dict[str, Any], *results: BackfillResult
) -> dict[str, Any]:
    """All that E2 compares; what ``results`` gave for sinks stands before what live wrote."""
    return {
        **left,
        "changelogs": _changelogs(log, whole),
        "sinks": {topic: _sink(log, topic, whole, results) for topic in sinks_of(whole)},
        "offsets": {
            str(partition): (at.offset, OffsetMetadata.decode(at.metadata))
            for partition, at in log.committed(whole.plan.application_id).items()
            if partition.topic in trial.history and trial.history[partition.topic][partition.partition]
        },
    }


def _changelogs(log: Log, whole: BackfillResult) -> dict[str, Any]:
    specs = {spec.name: spec for spec in whole.loaded.built.stores}
    return {
        store: [
            visible(raw(log, partition), specs[store], all_said=True) for partition in log.partitions(topic)
        ]
        for store, topic in whole.stores().items()
        if topic is not None
    }


def _sink(
    log: Log, topic: str, whole: BackfillResult, results: Sequence[BackfillResult]
) -> dict[int, list[SinkRecord]]:
    """By partition; as a set where several tasks write, or where records have no keys: live chooses a partition."""
    emitted = [result.sink(topic) for result in results]
    found = {
        partition.partition: [
            *(record for of in emitted for record in of.get(partition.partition, [])),
            *(sink_record(line) for line in raw(log, partition)),
        ]
        for partition in log.partitions(topic)
    }
    if any(record.key is None for records in found.values() for record in records):
        return {-1: sorted((record for records in found.values() for record in records), key=repr)}
    if writers_of(whole).get(topic, 0) > 1:
        return {place: sorted(records, key=repr) for place, records in found.items()}
    return found

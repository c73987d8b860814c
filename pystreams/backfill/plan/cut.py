"""The cut: which offsets a backfill reads, frozen before it reads any."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pystreams.backfill.plan.manifest import DEFAULT_COMMIT_RECORDS, Manifest
from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.backfill.sources import Source
from pystreams.backfill.sources.ranges import InputRange
from pystreams.clock import Clock, SystemClock
from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition

#: ``None``: everything up to now; an int: a time in ms, the same for all inputs but global topics, which are read up to
#: now; offsets: as given, others up to now.
Until = int | Mapping[TopicPartition, int] | None


def cut(
    plan: BackfillPlan,
    config: StreamsConfig,
    source: Source,
    until: Until = None,
    *,
    commit_records: int = DEFAULT_COMMIT_RECORDS,
    starts: Mapping[TopicPartition, int] | None = None,
    approximate: bool = False,
    clock: Clock | None = None,
) -> Manifest:
    """Freeze the ranges of all external inputs, and of global topics; ``starts`` are the first offsets to read where it
    is not the first that is there; with ``approximate`` those are made up. Global topics are always read whole: an
    event time does not cut them, because live reads them before it begins, and no task waits for their times.

    Raises ``OffsetOutOfRangeError`` for an end that is not in the log, and for holes in an archive; ``ConfigError`` for
    ends of partitions that the application does not read.
    """
    cut_by_time = plan.external_inputs
    partitions = [*cut_by_time, *plan.global_inputs]
    beginnings, ends = source.beginnings(partitions), source.ends(partitions)
    for partition, start in (starts or {}).items():
        if partition.topic in plan.global_topics:
            continue
        if start < beginnings[partition]:
            raise OffsetOutOfRangeError(
                f"records of {partition} that the earlier backfill has not read are not there any more",
                where=source.description,
                why=f"it read up to offset {start}, but the first offset in the source is {beginnings[partition]}",
                hint="read them from an archive, or begin a backfill that does not continue an earlier one",
            )
        if start > ends[partition]:
            raise OffsetOutOfRangeError(
                f"the source of {partition} ends before the earlier backfill did",
                where=source.description,
                why=f"the earlier backfill read up to offset {start}, but the source ends at {ends[partition]} "
                "(exclusive)",
                hint="archive the later records, or read them from the log",
            )
        beginnings[partition] = start
    chosen = ends
    if isinstance(until, int):
        # The log may have grown since its ends were taken.
        found = source.offsets_at(cut_by_time, until)
        chosen = {**ends, **{p: min(o, ends[p]) for p, o in found.items()}}
    elif until is not None:
        _require_inputs(until, partitions)
        chosen = {**ends, **until}
    for partition in partitions:
        if not beginnings[partition] <= chosen[partition] <= ends[partition]:
            raise OffsetOutOfRangeError(
                f"the cut of {partition} is at offset {chosen[partition]}, which the source does not hold",
                why=f"it holds offsets {beginnings[partition]} to {ends[partition]} (exclusive)",
                hint="choose an offset in this range, or a time",
            )
    inputs = tuple(InputRange(p, beginnings[p], chosen[p]) for p in partitions)
    for input in inputs:
        _require_all(input, source)
    last = source.last_before(chosen)
    return Manifest(
        application_id=plan.application_id,
        fingerprint=plan.fingerprint,
        cut_time_ms=(clock or SystemClock()).now_ms(),
        commit_records=commit_records,
        cache_max_bytes=config.statestore_cache_max_bytes,
        inputs=tuple(replace(input, last=last.get(input.partition)) for input in inputs),
        partitions=plan.partitions,
        approximate=approximate or source.approximate,
        with_headers=plan.with_headers,
    )


def _require_inputs(given: Collection[TopicPartition], partitions: Collection[TopicPartition]) -> None:
    unknown = sorted(set(given) - set(partitions))
    if unknown:
        raise ConfigError(
            f"the application does not read {unknown[0]}, so it cannot end there",
            why=f"it reads {', '.join(str(partition) for partition in partitions)}",
        )


def _require_all(input: InputRange, source: Source) -> None:
    missing = source.missing(input)
    if missing:
        raise OffsetOutOfRangeError(
            f"the source lacks records of {input.partition}",
            where=source.description,
            why="missing: " + ", ".join(f"offsets {start} to {end} (exclusive)" for start, end in missing),
            hint="a backfill cannot read records that were never archived; end before the first gap",
        )

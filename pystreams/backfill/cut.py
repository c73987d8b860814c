"""The cut: which offsets a backfill reads, frozen before it reads any."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.backfill.manifest import DEFAULT_COMMIT_RECORDS, InputRange, Manifest
from pystreams.backfill.plan import Plan
from pystreams.backfill.sources import Source
from pystreams.clock import Clock, SystemClock
from pystreams.config import StreamsConfig
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition

#: ``None``: everything up to now; an int: a time in ms, the same for all inputs; offsets: as given, others up to now.
Until = int | Mapping[TopicPartition, int] | None


def cut(
    plan: Plan,
    config: StreamsConfig,
    source: Source,
    until: Until = None,
    *,
    commit_records: int = DEFAULT_COMMIT_RECORDS,
    clock: Clock | None = None,
) -> Manifest:
    """Freeze the ranges of all external inputs. Raises ``OffsetOutOfRangeError`` for an end that is not in the log."""
    partitions = plan.external_inputs
    beginnings, ends = source.beginnings(partitions), source.ends(partitions)
    chosen = ends
    if isinstance(until, int):
        chosen = source.offsets_at(partitions, until)
    elif until is not None:
        chosen = {**ends, **until}
    for partition in partitions:
        if not beginnings[partition] <= chosen[partition] <= ends[partition]:
            raise OffsetOutOfRangeError(
                f"the cut of {partition} is at offset {chosen[partition]}, which the source does not hold",
                why=f"it holds offsets {beginnings[partition]} to {ends[partition]} (exclusive)",
                hint="choose offsets within, or a time",
            )
    return Manifest(
        application_id=plan.application_id,
        fingerprint=plan.fingerprint,
        cut_time_ms=(clock or SystemClock()).now_ms(),
        commit_records=commit_records,
        cache_max_bytes=config.statestore_cache_max_bytes,
        inputs=tuple(InputRange(p, beginnings[p], chosen[p]) for p in partitions),
        partitions=plan.partitions,
    )

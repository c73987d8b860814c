"""Refuses to write results to topics that would delete them at once, because they are older than the retention."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.handover.cut_backfill import CutBackfill
from pystreams.broker.port import Broker, TopicDescription, retention_of
from pystreams.errors import RetentionError
from pystreams.times import show_time
from pystreams.topics.topic_plan import TopicPlan, time_limits

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expired:
    """A topic whose retention is shorter than the age of the oldest record for it (both in ms). ``exists``: not only
    planned."""

    topic: str
    limit_ms: int
    oldest_ms: int
    exists: bool


def expired_changelogs(cut: CutBackfill, topics: TopicPlan, now_ms: int) -> Iterator[Expired]:
    """Changelogs that would delete entries of the stores that are computed."""
    limits = time_limits(topics, cut.loaded.built, None)
    for one in cut.plan.slices:
        computed = cut.manifest.slices.get(one.index)
        for store, changelog in one.stores.items():
            if computed is None or not one.final or changelog not in limits:
                continue
            limit_ms, oldest_ms = limits[changelog], computed.stores[store].oldest_ms
            if oldest_ms is not None and now_ms - oldest_ms > limit_ms:
                yield Expired(changelog, limit_ms, oldest_ms, changelog in topics.found)


def expired_outputs(
    result: BackfillResult, found: Mapping[str, TopicDescription], now_ms: int
) -> Iterator[Expired]:
    """Output topics that would delete the records for them."""
    for topic, description in found.items():
        limit_ms = retention_of(description.config)
        oldest_ms = None if limit_ms is None else _oldest(result, topic)
        if limit_ms is not None and oldest_ms is not None and now_ms - oldest_ms > limit_ms:
            yield Expired(topic, limit_ms, oldest_ms, exists=True)


def refuse(expired: Sequence[Expired], cut: CutBackfill, broker: Broker) -> None:
    """Raises ``RetentionError``, which names all topics that would delete records; with ``allow_expired`` it is a
    warning."""
    if not expired:
        return
    existing = " ".join(one.topic for one in expired if one.exists)
    mends = [f"pystreams topics alter {existing} --config retention.ms=-1"] if existing else []
    if not all(one.exists for one in expired):
        mends.append("set -s window_changelog_retention_ms=-1 for changelogs that do not exist yet")
    error = RetentionError(
        "topics would delete what the backfill writes right after it is written",
        where="\n".join([broker.description, *map(_shown, expired)]),
        why="the oldest record for each of them is older than its retention",
        hint=f"{', and '.join(mends)}; or allow it (-s allow_expired=true)",
    )
    if not cut.loaded.config.allow_expired:
        raise error
    log.warning("%s", error)


def _shown(expired: Expired) -> str:
    return f"{expired.topic}: retention.ms={expired.limit_ms}, oldest record {show_time(expired.oldest_ms)}"


def _oldest(result: BackfillResult, topic: str) -> int | None:
    """The least timestamp (ms) of the records for a topic."""
    found = result.for_each_partition(result.sink_rows(topic), _least_timestamp)
    return min((int(text) for text in found if text), default=None)


def _least_timestamp(_: int, batches: Iterator[Arrow]) -> bytes:
    least = min(
        (pc.min(batch.column("timestamp")).as_py() for batch in batches if batch.num_rows), default=None
    )
    return b"" if least is None else str(least).encode()

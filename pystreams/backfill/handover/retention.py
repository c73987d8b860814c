"""Refuses to write results to topics that would delete them at once, because they are older than the retention; before
anything is computed, it warns of what will be refused."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.handover.cut_backfill import CutBackfill
from pystreams.broker.port import Broker, TopicDescription, retention_of
from pystreams.engine.node_defaults import extractor_of
from pystreams.errors import RetentionError
from pystreams.times import show_time
from pystreams.timestamps import RecordTimestamp
from pystreams.topics.oldest_output import Oldest, older_than_limits, oldest_outputs
from pystreams.topics.topic_plan import TopicPlan, time_limits

log = logging.getLogger(__name__)

#: The way out, on the command line and in Python.
_ALLOW: Final = "or allow it (-s allow_expired=true, or App(..., allow_expired=True))"


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
    error = RetentionError(
        "topics would delete what the backfill writes right after it is written",
        where="\n".join([broker.description, *map(_shown, expired)]),
        why="the oldest record for each of them is older than its retention",
        hint=f"{_mends(expired)}; {_ALLOW}",
    )
    if not cut.loaded.config.allow_expired:
        raise error
    log.warning("%s", error)


def _mends(expired: Sequence[Expired]) -> str:
    existing = " ".join(one.topic for one in expired if one.exists)
    mends = [f"pystreams topics alter {existing} --config retention.ms=-1"] if existing else []
    if not all(one.exists for one in expired):
        mends.append(
            "set -s window_changelog_retention_ms=-1 (or App(...)) for changelogs that do not exist yet"
        )
    return ", and ".join(mends)


def _shown(expired: Expired, record: str = "oldest record") -> str:
    return f"{expired.topic}: retention.ms={expired.limit_ms}, {record} {show_time(expired.oldest_ms)}"


# Before anything is computed


def warn_of_changelogs(cut: CutBackfill, topics: TopicPlan, broker: Broker, now_ms: int) -> None:
    """Log which changelogs would delete even the results of the last records that are read (see ``_warn``)."""
    filled = {changelog for one in cut.plan.slices if one.final for changelog in one.stores.values()}
    limits = time_limits(topics, cut.loaded.built, None)
    own = {topic: limit_ms for topic, limit_ms in limits.items() if topic in filled}
    _warn(cut, broker, own, topics.found, now_ms)


def warn_of_outputs(
    cut: CutBackfill, found: Mapping[str, TopicDescription], broker: Broker, now_ms: int
) -> None:
    """As ``warn_of_changelogs``, of output topics."""
    limits = {topic: retention_of(description.config) for topic, description in found.items()}
    _warn(cut, broker, {topic: ms for topic, ms in limits.items() if ms is not None}, found, now_ms)


def _warn(
    cut: CutBackfill, broker: Broker, limits: Mapping[str, int], existing: Collection[str], now_ms: int
) -> None:
    """A warning and no refusal, because a step of the user may drop these records. With ``allow_expired`` the results
    are not refused later, so nothing is logged now."""
    if cut.loaded.config.allow_expired:
        return
    written = oldest_outputs(cut.loaded.built, _last_inputs(cut))
    found = older_than_limits({topic: reach.sure for topic, reach in written.items()}, limits, now_ms)
    if found:
        too_old = [
            Expired(topic, limits[topic], found[topic][0], topic in existing) for topic in sorted(found)
        ]
        warning = RetentionError(
            "topics would delete what the backfill writes, so its results will be refused once they are computed",
            where="\n".join([broker.description, *(_shown(one, "last record") for one in too_old)]),
            why="even the results of the last records that it reads are older than the retention",
            hint=f"{_mends(too_old)}; {_ALLOW}",
        )
        log.warning("%s", warning)


def _last_inputs(cut: CutBackfill) -> dict[str, Oldest]:
    """By external topic, the latest of its partitions' last records, if its source takes the records' own times."""
    built, config = cut.loaded.built, cut.loaded.config
    sources = {
        topic: source
        for topic in {input.partition.topic for input in cut.manifest.inputs}
        for sub in built.subtopologies
        if (source := sub.source_for(topic)) is not None
    }
    found: dict[str, Oldest] = {}
    for input in cut.manifest.inputs:
        topic, last = input.partition.topic, input.last
        if last is None or topic not in sources:
            continue
        if last.timestamp >= 0 and isinstance(extractor_of(sources[topic], config), RecordTimestamp):
            found[topic] = max(found.get(topic, (-1, input.partition)), (last.timestamp, input.partition))
    return found


def _oldest(result: BackfillResult, topic: str) -> int | None:
    """The least timestamp (ms) of the records for a topic."""
    found = result.for_each_partition(result.sink_rows(topic), _least_timestamp)
    return min((int(text) for text in found if text), default=None)


def _least_timestamp(_: int, batches: Iterator[Arrow]) -> bytes:
    least = min(
        (pc.min(batch.column("timestamp")).as_py() for batch in batches if batch.num_rows), default=None
    )
    return b"" if least is None else str(least).encode()

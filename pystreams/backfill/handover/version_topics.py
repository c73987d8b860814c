"""The changelogs of versioned stores, as a hand-over needs them: empty, and kept from being compacted too soon.

Records of an earlier run cannot be removed one by one, so a topic that is not empty is created again.

Kafka decides by the records' own timestamps whether they are old enough to be compacted, and the end of a transaction
closes a segment. So compaction would delete all of last year's versions except the last one of each key within seconds.
To prevent this, ``min.compaction.lag.ms`` is extended by the time by which the store's time is behind the clock.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.broker.port import Admin, Broker, TopicSpec
from pystreams.ids import TopicPartition
from pystreams.topics.topic_plan import LONGEST_MS, TopicPlan, internal_topics

log = logging.getLogger(__name__)

_LAG = "min.compaction.lag.ms"
#: The lag is a day longer than the history. In a topic that exists and is empty, this part of the day may be used up.
_SPARE_MS = 12 * 60 * 60 * 1000


class VersionTopics:
    """The changelogs of versioned stores of a backfill's result, on a log whose clock shows ``now_ms``."""

    def __init__(self, result: BackfillResult, broker: Broker, topics: TopicPlan, now_ms: int) -> None:
        loaded = result.loaded
        versioned = {spec.name for spec in loaded.built.stores if spec.kind == "versioned"}
        stores = {topic: store for store, topic in result.stores().items() if topic and store in versioned}
        self._found = topics.found
        #: The required topics, by name.
        self._specs: dict[str, TopicSpec] = {}
        for spec in internal_topics(loaded.built, topics.partitioning, loaded.config):
            if spec.name in stores:
                behind_ms = _behind(result, stores[spec.name], now_ms) if broker.compacts_by_timestamp else 0
                lag_ms = min(int(spec.config[_LAG]) + behind_ms, LONGEST_MS)
                self._specs[spec.name] = replace(spec, config={**spec.config, _LAG: str(lag_ms)})

    def of(self, missing: Collection[TopicSpec]) -> list[TopicSpec]:
        """Topics that are to be created, as they have to be."""
        return [self._specs.get(spec.name, spec) for spec in missing]

    def unfit(self, admin: Admin) -> set[str]:
        """The changelogs that have records already, or would be compacted too soon."""
        there = [spec for spec in self._specs.values() if spec.name in self._found]
        partitions = [
            TopicPartition(spec.name, number) for spec in there for number in range(spec.partitions)
        ]
        used = {partition.topic for partition, end in admin.end_offsets(partitions).items() if end}
        return used | {spec.name for spec in there if self._too_soon(spec)}

    def make_anew(self, admin: Admin) -> None:
        """The unfit ones."""
        unfit = self.unfit(admin)
        if unfit:
            log.info("created again: %s", ", ".join(sorted(unfit)))
            admin.delete_topics(unfit)
            admin.create_topics([self._specs[name] for name in sorted(unfit)])

    def _too_soon(self, wanted: TopicSpec) -> bool:
        # Without the right to see the settings nothing is known of them.
        lag_ms = self._found[wanted.name].config.get(_LAG)
        return lag_ms is not None and int(lag_ms) < int(wanted.config[_LAG]) - _SPARE_MS


def _behind(result: BackfillResult, store: str, now_ms: int) -> int:
    """By how much the store's time is behind the clock, at most (ms)."""
    found = [one.stores[store] for one in result.manifest.slices.values() if store in one.stores]
    reached = [one.reached_ms for one in found if one.reached_ms is not None]
    return max(0, now_ms - min(reached)) if reached else 0

"""Random topologies with their records, spread over partitions, and where to cut them; and what can be said of each.

They come from the oracle's generator, from the recorded scenarios of ``tests/golden``, or from a file of JSON that was
written down once (``write``, ``read``), as far as pystreams has their operators.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.ids import TopicPartition
from pystreams.topology.topology import Topology
from tests.backfill.kit import History
from tests.backfill.live import random_cut
from tests.conformance import fuzz, golden, oracle
from tests.conformance.scenarios import (
    global_topics,
    output_topics,
    settings_of,
    spread,
    topology_of,
    with_changelogs,
)

_LIVE = {
    "statestore_cache_max_bytes": 0,
    "max_task_idle_ms": 0,
    "commit_interval_ms": 20,
    "poll_ms": 5,
    "window_changelog_retention_ms": -1,
}
#: librdkafka takes a record of time 0 for one without a time.
FIRST_MS_ON_KAFKA = 1_000

#: Processors of the scenarios that keep state in attributes or in punctuators of their own.
_WITH_ATTRIBUTES = frozenset({"tick", "tick_once", "timer"})
#: Those that schedule punctuators.
_WITH_PUNCTUATORS = _WITH_ATTRIBUTES | {"two_ticks", "buffer"}


class Trial(NamedTuple):
    """A topology, its records in so many partitions, where to cut them, and a cache budget for where caches are on."""

    name: str
    scenario: Any
    history: History
    cut: Mapping[TopicPartition, int]
    #: A time for a cut at one time, ms.
    until_ms: int
    partitions: int
    cache_max_bytes: int

    @property
    def settings(self) -> dict[str, Any]:
        """Those of a live run; caches are off."""
        return {**settings_of(self.scenario), **_LIVE}

    def topology(self) -> Topology:
        return topology_of(self.scenario)

    @property
    def outputs(self) -> dict[str, int]:
        """The topics that are written by name, as wide as the inputs."""
        return dict.fromkeys(output_topics(self.scenario), self.partitions)

    def with_changelogs(self) -> Trial:
        """The same, with a changelog for each store: without one it is not handed over."""
        return self._replace(scenario=with_changelogs(self.scenario))

    def cut_at(self, time_ms: int) -> dict[TopicPartition, int]:
        """The offset of each partition's first record of this time or later; global topics are not cut by time."""
        whole = global_topics(self.scenario)
        return {
            TopicPartition(topic, place): next(
                (n for n, line in enumerate(lines) if line.timestamp >= time_ms and topic not in whole),
                len(lines),
            )
            for topic, of_topic in self.history.items()
            for place, lines in enumerate(of_topic)
        }


def fuzzed(seed: int, count: int, profile: str | None = None) -> Iterator[Trial]:
    """``count`` of those that the oracle's generator makes, or those of a profile of the conformance tests. Raises
    ``OracleError`` where there is no generator."""
    made = oracle.fuzz_scenarios(seed, count) if profile is None else fuzz.scenarios(seed, count, profile)
    for scenario in made:
        yield trial(scenario, seed)


def recorded(seed: int) -> Iterator[Trial]:
    """The recorded scenarios that end well."""
    for case in golden.cases():
        if not case.result.get("error"):
            yield trial(case.scenario, seed)


def trial(scenario: Any, seed: int, *, partitions: int | None = None, first_ms: int = 0) -> Trial:
    """A scenario with its records spread at random, the same for the same seed; ``first_ms`` is added to all times."""
    chance = random.Random(f"{scenario['name']} {seed}")
    drawn = chance.choice((1, 1, 2, 3))
    width = partitions or drawn
    history = spread(scenario, width, chance, first_ms=first_ms)
    cut = random_cut(history, chance)
    times = [line.timestamp for of_topic in history.values() for lines in of_topic for line in lines]
    until_ms = chance.randint(min(times, default=0), max(times, default=0) + 1)
    return Trial(
        scenario["name"], scenario, history, cut, until_ms, width, chance.choice((100, 600, 1_000_000))
    )


# A file of trials


class Written(NamedTuple):
    """A trial as a file has it: how it is to be made again."""

    scenario: Any
    seed: int
    partitions: int
    kind: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.scenario['name']}"

    def trial(self, first_ms: int = 0) -> Trial:
        return trial(self.scenario, self.seed, partitions=self.partitions, first_ms=first_ms)


def write(path: Path, trials: Iterable[Written]) -> None:
    """Line by line, so that a difference can be read."""
    rows = [json.dumps(one._asdict(), separators=(",", ":")) for one in trials]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def read(path: Path) -> list[Written]:
    return [Written(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


# What can be said of one


def deterministic(plan: BackfillPlan) -> bool:
    """Live has one result: each task reads topics from outside only, or one internal topic that one task writes."""
    for one in plan.slices:
        internal = [input for input in one.inputs if input.internal]
        writers = sum(plan.slices[index].tasks for input in internal for index in input.upstream)
        if one.carried_from is not None or (internal and (len(one.inputs) > 1 or writers > 1)):
            return False
    return True


def not_handed_over(trial: Trial, plan: BackfillPlan) -> str | None:
    """Why what the plan exempts keeps a hand-over from being as a restart; None if nothing does. Its stores have
    changelogs (``with_changelogs``)."""
    behind = any(input.internal for one in plan.slices for input in one.inputs)
    if forgets(trial.scenario):
        return "which entries of a store were used last"
    for name, parameters in _processors(trial.scenario):
        if name in _WITH_ATTRIBUTES:
            return "state in a processor's attributes"
        if "wall" in parameters:
            return "punctuation by wall clock"
        if name == "meta" and behind:
            return "the offset of a record from an internal topic"
    return None


def seamless(trial: Trial, plan: BackfillPlan) -> bool:
    """Whether a cut at one time leaves no seam: no internal topic, no attributes, no punctuator, and records are merged
    by the times by which they are cut."""
    return (
        not any(input.internal for one in plan.slices for input in one.inputs)
        and not any(name in _WITH_PUNCTUATORS for name, _ in _processors(trial.scenario))
        and not extracts_times(trial.scenario)
    )


def extracts_times(scenario: Any) -> bool:
    """Whether records have other times for the application than for the log."""
    named = [scenario["config"].get("timestamp_extractor")]
    named += [step.get("timestamp_extractor") for step in scenario["steps"]]
    return "value_ts" in named


def forgets(scenario: Any) -> bool:
    """Whether a store keeps the entries used last alone: its changelog has more, and not which."""
    return '"lru:' in json.dumps(scenario["steps"])


def punctuates(scenario: Any) -> bool:
    """Whether a processor schedules punctuators; those that keep state in attributes do, too."""
    return any(name in _WITH_PUNCTUATORS for name, _ in _processors(scenario))


def sees_positions(scenario: Any) -> bool:
    """Whether a processor forwards a record's offset, partition or stream time."""
    return any(name == "meta" for name, _ in _processors(scenario))


def _processors(scenario: Any) -> Iterator[tuple[str, list[str]]]:
    for step in scenario["steps"]:
        if "processor" in step:
            name, *parameters = step["processor"].split(":")
            yield name, parameters

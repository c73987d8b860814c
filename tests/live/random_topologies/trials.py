"""Random topologies for the embedded log: which of them have one result, whenever their tasks stop."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from pystreams.ids import TopicPartition
from pystreams.topology.topology import Topology
from tests.backfill.trials import punctuates
from tests.conformance import fuzz, golden
from tests.conformance.runner import run
from tests.conformance.scenarios import output_topics, settings_of, spread, topology_of, with_changelogs
from tests.live.support import Line

Json = Any

#: With caches on, there is room for everything: which task's entries leave a full cache is chance.
CACHE_MAX_BYTES = 10_000_000


#: By topic and partition.
History = dict[TopicPartition, list[Line]]


class Trial(NamedTuple):
    """A topology, its records, and how it is run: ``half`` of each partition's records are there from the beginning,
    the others come after what happens in the ``middle``."""

    scenario: Json
    seed: int
    partitions: int
    history: History
    half: dict[TopicPartition, int]
    #: "close": it is stopped; "kill": by kill -9; "join": a second client takes over some of its tasks.
    middle: str
    #: With what happens in the middle, the local state is lost.
    wiped: bool
    cached: bool
    #: "kill": at which event; "close" and "join": after how many records.
    moment: int

    @property
    def name(self) -> str:
        return str(self.scenario["name"])

    @property
    def settings(self) -> dict[str, Any]:
        return {
            **settings_of(self.scenario),
            "application_id": "random",
            "statestore_cache_max_bytes": CACHE_MAX_BYTES if self.cached else 0,
            "num_stream_threads": 2,
            "max_task_idle_ms": 0,
            # A task that is computed alone waits for nobody; ``tests/catching_up`` is about those that do.
            "stream_time": "java",
            "commit_interval_ms": 20,
            "poll_ms": 5,
            "window_changelog_retention_ms": -1,
            # What has been read is read once more, by the reference.
            "repartition_purge_interval_ms": 3_600_000,
        }

    def topology(self) -> Topology:
        return topology_of(self.scenario)

    @property
    def leaves_out(self) -> bool:
        """Bad records may be left out."""
        config = self.scenario["config"]
        steps = [config, *self.scenario["steps"]]
        # A time within a value may lie before 1970.
        skips = any(step.get("timestamp_extractor") in ("log_and_skip", "value_ts") for step in steps)
        return skips or config.get("deserialization_handler") == "continue"

    @property
    def outputs(self) -> list[str]:
        return output_topics(self.scenario)


def fuzzed(seed: int, count: int) -> Iterator[Trial]:
    """Random ones; the same for the same arguments. Raises ``OracleError`` where there is no generator."""
    # Not all are fit; shuffled, for they come by profile.
    made = fuzz.scenarios(seed, 2 * count + 10, "mixed")
    random.Random(seed).shuffle(made)
    good = (one for one in made if fit(one) and run(one)["error"] is None)
    for scenario in islice(good, count):
        yield trial(scenario, seed)


def recorded(seed: int) -> Iterator[Trial]:
    """Those of ``tests/golden`` that end well."""
    for case in golden.cases():
        if not case.result.get("error") and fit(case.scenario):
            yield trial(case.scenario, seed)


def fit(scenario: Json) -> bool:
    """Whether its result depends neither on when tasks start nor on the wall clock, and its topics are known."""
    steps = scenario["steps"]
    return (
        # After a start, what is kept in attributes and what punctuates begin anew.
        not punctuates(scenario)
        and not any("pattern" in step or "topic_fn" in step for step in steps)
        # Said several times, it may hold more back.
        and not any("max_records" in step or "max_bytes" in step for step in steps if _stops(step))
        and scenario["config"].get("max_task_idle_ms", 0) == 0
    )


def _stops(step: Json) -> bool:
    return step.get("until") == "window_closes" or step.get("full") == "shut_down"


def trial(scenario: Json, seed: int) -> Trial:
    """How a scenario is run, the same for the same seed."""
    chance = random.Random(f"{scenario['name']} {seed}")
    scenario = _restorable(scenario)
    partitions = chance.choice((2, 2, 3, 4))
    history = {
        TopicPartition(topic, number): lines
        for topic, of_topic in spread(scenario, partitions, chance).items()
        for number, lines in enumerate(of_topic)
    }
    half = {partition: chance.randint(0, len(lines)) for partition, lines in history.items()}
    middle = chance.choice(("close", "kill", "kill", "join"))
    early = sum(half.values())
    moment = chance.randint(1, max(1, 2 * early if middle == "kill" else early))
    wiped, cached = chance.random() < 0.3, chance.random() < 0.5
    # Its steps have times of their own: one still changes windows that the others' records made expire, and that are
    # found as long as a cache has them.
    cached = cached and not any(step["op"] == "cogroup" for step in scenario["steps"])
    return Trial(
        scenario, seed, partitions, history, half, middle, wiped and middle != "join", cached, moment
    )


def _restorable(scenario: Json) -> Json:
    """With a changelog for each store, and none that forgets what was not used for long: a start counts as use."""
    scenario = with_changelogs(scenario)
    for step in scenario["steps"]:
        for place in (step, step.get("materialized") or {}):
            if str(place.get("type", "")).startswith("lru"):
                place["type"] = "in_memory"
    return scenario

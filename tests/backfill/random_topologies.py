"""Random topologies, spread over partitions and cut anywhere: backfill, hand over and go on live equals live.

    PYSTREAMS_ORACLE=path/to/oracle python -m tests.backfill.random_topologies --seed 7 --count 200
    python -m tests.backfill.random_topologies --golden

Topologies are those of the oracle's generator, or recorded ones, as far as pystreams has their operators. Where live
itself has one result only, backfill and hand-over must give it (E2); of all, the backfill must give the same in other
batches, and when it is resumed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.backfill.handover import hand_over
from pystreams.backfill.plan import Plan
from pystreams.backfill.result import BackfillResult
from pystreams.backfill.sources import EmbeddedSource
from pystreams.config import StreamsConfig
from pystreams.errors import StreamsError, TopicError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.runtime.offset_metadata import OffsetMetadata
from pystreams.runtime.streams import Streams
from pystreams.topology.topology import Topology
from tests.backfill.kit import Backfill, History, Line, everything
from tests.backfill.live import append, raw, sink_record, split, visible
from tests.conformance import golden, oracle
from tests.conformance.builder import ScenarioBuilder
from tests.conformance.missing import missing_operators, pruned
from tests.conformance.runner import _bytes, driver_config
from tests.live.support import TIMEOUT_S, Log, caught_up

#: What is taken of a scenario's configuration.
_SETTINGS = (
    "application_id",
    "default_key_serde",
    "default_value_serde",
    "default_timestamp_extractor",
    "deserialization_exception_handler",
    "processing_exception_handler",
)
_OFF = {
    "statestore_cache_max_bytes": 0,
    "max_task_idle_ms": 0,
    "commit_interval_ms": 20,
    "poll_ms": 5,
    "window_changelog_retention_ms": -1,
}
#: A scenario has few records: it is said several times, each later by so much.
_ROUNDS = 3
_ROUND_MS = 40

#: What came of a trial.
EQUAL, NOT_COMPARED, REFUSED = "equal to live", "not to be compared with live", "refused or failed, as live"

#: Processors of the scenarios that keep state in attributes or in punctuators of their own.
_WITH_ATTRIBUTES = frozenset({"tick", "tick_once", "timer"})


class Trial(NamedTuple):
    """A topology, its records in so many partitions, and where to cut them."""

    name: str
    scenario: Any
    history: History
    cut: dict[TopicPartition, int]
    partitions: int

    @property
    def settings(self) -> dict[str, Any]:
        config: StreamsConfig = driver_config(self.scenario["config"])
        return {**{name: getattr(config, name) for name in _SETTINGS}, **_OFF}

    def topology(self) -> Topology:
        return ScenarioBuilder(self.scenario["config"]).build(self.scenario["steps"])


def fuzzed(seed: int, count: int) -> Iterator[Trial]:
    """Raises ``OracleError`` where there is no generator."""
    for scenario in oracle.fuzz_scenarios(seed, count):
        kept = pruned(scenario)
        if kept is not None:
            yield _trial(kept, seed)


def recorded(seed: int) -> Iterator[Trial]:
    """Those that end well."""
    for case in golden.cases():
        if not missing_operators(case.scenario) and not case.result.get("error"):
            yield _trial(case.scenario, seed)


def _trial(scenario: Any, seed: int) -> Trial:
    chance = random.Random(f"{scenario['name']} {seed}")
    partitions = chance.randint(1, 3)
    history: dict[str, list[list[Line]]] = {
        topic: [[] for _ in range(partitions)] for topic in _inputs(scenario)
    }
    for number in range(_ROUNDS):
        for entry in scenario["drive"]:
            if "pipe" in entry and entry["pipe"] in history:
                line = _line(entry, number * _ROUND_MS)
                place = (
                    chance.randrange(partitions)
                    if line.key is None
                    else partition_for_key(line.key, partitions)
                )
                history[entry["pipe"]][place].append(line)
    cut = {
        TopicPartition(topic, place): chance.randint(0, len(of_partition))
        for topic, spread in history.items()
        for place, of_partition in enumerate(spread)
    }
    return Trial(scenario["name"], scenario, history, cut, partitions)


def _inputs(scenario: Any) -> set[str]:
    topics = {topic for step in scenario["steps"] for topic in step.get("topics", ())}
    return topics | {step["topic"] for step in scenario["steps"] if step["op"] == "table"}


def _line(entry: Any, later_ms: int) -> Line:
    key = entry.get("key")
    headers = tuple(
        (name, None if text is None else text.encode()) for name, text in entry.get("headers", ())
    )
    time_ms = max(0, entry.get("ts", 0)) + later_ms
    return Line(None if key is None else str(key).encode(), _bytes(entry), time_ms, headers)


def deterministic(plan: Plan) -> bool:
    """Live has one result: each task reads topics from outside only, or one internal topic that one task writes."""
    for one in plan.slices:
        internal = [input for input in one.inputs if input.internal]
        writers = sum(plan.slices[index].tasks for input in internal for index in input.upstream)
        if one.carried_from is not None or (internal and (len(one.inputs) > 1 or writers > 1)):
            return False
    return True


def exempt(scenario: Any, plan: Plan) -> bool:
    """A processor depends on what is not handed over: wall clock, its own attributes, offsets in internal topics."""
    for step in scenario["steps"]:
        name, *parameters = step.get("processor", "").split(":")
        behind = any(input.internal for one in plan.slices for input in one.inputs)
        if name in _WITH_ATTRIBUTES or "wall" in parameters or (name == "meta" and behind):
            return True
    return False


def check(trial: Trial, folder: Path) -> str:
    """What came of it. Raises ``AssertionError`` for a difference."""
    with closing(Log(folder / "handed")) as handed:
        _create(handed, trial, ())
        append(handed, trial.history)
        try:
            whole = _backfill(trial, handed, folder / "whole", None)
        except (TopologyError, TopicError):
            return REFUSED
        except StreamsError:
            return REFUSED
        named = {topic for one in whole.plan.slices for topic in one.sinks}
        sinks = sorted(named | {partition.topic for partition in whole.written()})
        _create(handed, trial, sinks)
        result = _backfill(trial, handed, folder / "cut", trial.cut)
        other = _backfill(trial, handed, folder / "other", trial.cut, batch_rows=3)
        assert everything(other) == everything(result), "in other batches"
        if not deterministic(result.plan) or exempt(trial.scenario, result.plan):
            return NOT_COMPARED
        hand_over(result, handed.broker)
        _live(handed, trial)
        found = _left(handed, trial, result, sinks, before=True)
    with closing(Log(folder / "live")) as live:
        _create(live, trial, sinks)
        for part in split(trial.history, trial.cut):
            append(live, part)
            _live(live, trial)
        assert found == _left(live, trial, result, sinks, before=False)
    return EQUAL


def _create(log: Log, trial: Trial, sinks: Any) -> None:
    have = log.admin.partition_counts()
    log.create(
        *(topic for topic in [*trial.history, *sinks] if topic not in have), partitions=trial.partitions
    )


def _backfill(trial: Trial, log: Log, staging: Path, until: Any, batch_rows: int = 10_000) -> BackfillResult:
    source = EmbeddedSource(str(log.path / "log.db"))
    settings = {**trial.settings, "state_dir": log.path / "state"}
    return Backfill(
        trial.topology(), source, staging, until=until, commit_records=5, batch_rows=batch_rows, **settings
    ).run()


def _live(log: Log, trial: Trial) -> None:
    config = StreamsConfig.of(**trial.settings, state_dir=log.path / "state")
    streams = Streams(trial.topology(), config, broker=log.broker)
    streams.start()
    try:
        caught_up(streams)
    finally:
        assert streams.close(1000 * TIMEOUT_S)


def _left(log: Log, trial: Trial, result: BackfillResult, sinks: list[str], *, before: bool) -> Any:
    """All that E2 compares; with ``before`` what the backfill wrote for sinks stands before what live wrote."""
    built = result.loaded.built
    specs = {spec.name: spec for spec in built.stores}
    changelogs = {
        str(partition): visible(raw(log, partition), specs[store])
        for store, topic in result.stores().items()
        if topic is not None
        for partition in log.partitions(topic)
    }
    records = {topic: _sink(log, topic, result if before else None) for topic in sinks}
    writers = Counter(topic for one in result.plan.slices for topic in one.sinks)
    if trial.partitions > 1 or len(result.plan.slices) > 1:
        # Several tasks write to one partition, or a record without a key goes anywhere.
        records = {topic: sorted(of_topic, key=repr) for topic, of_topic in records.items()}
    offsets = {
        str(partition): (at.offset, OffsetMetadata.decode(at.metadata))
        for partition, at in log.committed(built.application_id).items()
        if partition.topic in trial.history and trial.history[partition.topic][partition.partition]
    }
    return {"changelogs": changelogs, "sinks": records, "offsets": offsets, "writers": writers}


def _sink(log: Log, topic: str, result: BackfillResult | None) -> list[Any]:
    emitted = {} if result is None else result.sink(topic)
    return [
        record
        for partition in log.partitions(topic)
        for record in [
            *emitted.get(partition.partition, []),
            *(sink_record(line) for line in raw(log, partition)),
        ]
    ]


def main() -> int:
    """0: no difference; 1: at least one; 2: there is no generator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--golden", action="store_true", help="the recorded scenarios instead of random ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    came: Counter[str] = Counter()
    try:
        for trial in (
            recorded(arguments.seed) if arguments.golden else fuzzed(arguments.seed, arguments.count)
        ):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    came[check(trial, Path(folder))] += 1
                except (AssertionError, StreamsError) as difference:
                    came["DIFFERENT"] += 1
                    print(f"{trial.name}, seed {arguments.seed}: {str(difference)[:2000]}", flush=True)
    except oracle.OracleError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"seed {arguments.seed}: " + ", ".join(f"{count} {what}" for what, count in came.items()))
    return 1 if came["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Backfills of single partitions beside the real Kafka Streams: outputs, changelogs after compaction, stream time and
drops. Java's driver is given the records in the order in which a task takes them; caches are off in both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from pystreams.backfill.compute.backfill_result import BackfillResult, SinkRecord
from pystreams.ids import TopicPartition
from pystreams.serde import BYTES
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from tests.backfill.kit import merged
from tests.backfill.live import visible
from tests.backfill.trials import Trial, extracts_times, forgets, punctuates, sees_positions
from tests.conformance import oracle
from tests.conformance.builder import ScenarioBuilder
from tests.conformance.lost_on_close import lost_on_close
from tests.conformance.runner import run
from tests.conformance.scenarios import global_topics
from tests.conformance.types import show_headers, show_key, show_value, value_serde
from tests.live.support import Line

Json = Any

_COMPARED = ("outputs", "changelogs", "stream_time", "dropped")


class Question(NamedTuple):
    """A scenario for Java, and what the backfill gave (None: it failed)."""

    name: str
    scenario: Json
    found: Json


def comparable(trial: Trial, result: BackfillResult) -> bool:
    """Whether Java's driver, where one task has all sub-topologies, has the same one result."""
    several = len(result.plan.slices) > 1
    return (
        trial.partitions == 1
        and not forgets(trial.scenario)
        and all(count == 1 for count in result.plan.partitions.values())
        and not (several and (punctuates(trial.scenario) or sees_positions(trial.scenario)))
        and not (extracts_times(trial.scenario) and len(trial.history) > 1)
    )


def question(trial: Trial, result: BackfillResult | None) -> Question:
    """``result`` is that of the trial's whole history; None if the backfill failed."""
    scenario = dict(trial.scenario)
    scenario["config"] = {**scenario["config"], "cache_max_bytes": 0}
    whole = global_topics(trial.scenario)
    lines = merged(trial.history)
    # A global table has all of its records before others come.
    lines.sort(key=lambda piped: piped[0] not in whole)
    scenario["drive"] = [_pipe(topic, line) for topic, line in lines]
    return Question(trial.name, scenario, None if result is None else _found(trial, result))


def differences(questions: list[Question]) -> list[str]:
    """Where Java gives something else, in words. Raises ``OracleError``."""
    told = []
    answers = oracle.ask([one.scenario for one in questions])
    for one, answer in zip(questions, answers, strict=True):
        if (answer["error"] is None) != (one.found is not None):
            told.append(f"{one.name}: Java fails, or does not: {answer['error']}")
        elif one.found is not None:
            if lost_on_close(one.scenario, answer):
                # What Java has lost: all else is as in Java.
                answer = run(one.scenario)
            expected = _expected(answer, one.found)
            told += [
                f"{one.name}: {what}: Java has {expected[what]}, the backfill {one.found[what]}"
                for what in _COMPARED
                if expected[what] != one.found[what]
            ]
    return told


def _pipe(topic: str, line: Line) -> Json:
    entry: Json = {"pipe": topic, "ts": line.timestamp, "value": None}
    entry["key"] = None if line.key is None else line.key.decode()
    if line.value is not None:
        del entry["value"]
        entry["value_hex"] = line.value.hex()
    if line.headers:
        entry["headers"] = [[name, None if value is None else value.decode()] for name, value in line.headers]
    return entry


def _found(trial: Trial, result: BackfillResult) -> Json:
    types = _Types(trial.scenario)
    several = {topic for topic, writers in writers_of(result).items() if writers > 1}
    outputs = {
        topic: _ordered([types.shown(topic, record) for record in result.sink(topic)[0]], topic in several)
        for topic in {partition.topic for partition in result.written()}
    }
    specs = {spec.name: spec for spec in result.loaded.built.stores}
    logged = {topic: store for store, topic in result.stores().items() if topic is not None}
    times = [
        time
        for outcomes in result.outcomes.values()
        for outcome in outcomes
        for time in outcome.partition_times.values()
    ]
    return {
        "outputs": outputs,
        "changelogs": {
            topic: _entries(
                [Line(*entry) for entry in sorted(result.changelog(store)[0], key=lambda one: one.timestamp)],
                specs[store],
            )
            for topic, store in logged.items()
        },
        "stream_time": max(times, default=-1),
        "dropped": sum(one.dropped for one in result.manifest.slices.values()),
        # Without serdes, which are nothing to send to another process.
        "specs": {
            topic: replace(specs[store], key_serde=BYTES, value_serde=BYTES)
            for topic, store in logged.items()
        },
        "several": several,
        # Java counts those, too.
        "globally_dropped": sum(
            line.key is None
            for topic in global_topics(trial.scenario)
            for lines in trial.history[topic]
            for line in lines
        ),
    }


def _expected(answer: Json, found: Json) -> Json:
    """Java's answer as ``_found`` tells it."""
    changelogs: Json = {}
    for topic, spec in found["specs"].items():
        changes = [
            Line(bytes.fromhex(one["key_hex"]), _bytes(one["value_hex"]), one["ts"] or 0)
            for one in answer["internal"].get(topic, ())
        ]
        changelogs[topic] = _entries(changes, spec, all_said=True)
    return {
        "outputs": {
            topic: _ordered(
                [{name: one[name] for name in ("key", "value", "ts", "headers")} for one in records],
                topic in found["several"],
            )
            for topic, records in answer["outputs"].items()
            if records
        },
        "changelogs": changelogs,
        "stream_time": answer["stream_time"],
        "dropped": answer["metrics"]["dropped"] - found["globally_dropped"],
    }


def _entries(changes: list[Line], spec: StoreSpec, *, all_said: bool = False) -> list[Json]:
    shown = visible(changes, spec, all_said=all_said)
    return [(entry.key.hex(), (entry.value or b"").hex(), entry.timestamp) for entry in shown]


def _ordered(records: list[Json], several: bool) -> list[Json]:
    """As a set where several tasks write: nothing orders them."""
    return sorted(records, key=repr) if several else records


class _Types:
    """What a scenario's sinks hold, also those whose topic is chosen by record."""

    def __init__(self, scenario: Json) -> None:
        self._builder = ScenarioBuilder(scenario["config"])
        self._builder.build(scenario["steps"])
        self._by_prefix = {
            step.get("topic_prefix", ""): self._builder.results[step["from"]]
            for step in scenario["steps"]
            if step["op"] == "to" and "topic_fn" in step
        }

    def shown(self, topic: str, record: SinkRecord) -> Json:
        key, value = (serde.deserializer(topic) for serde in self._serdes(topic))
        return {
            "key": show_key(None if record.key is None else key(record.key)),
            "value": show_value(None if record.value is None else value(record.value)),
            "ts": record.timestamp,
            "headers": show_headers(record.headers),
        }

    def _serdes(self, topic: str) -> tuple[AnySerde, AnySerde]:
        if topic in self._builder.sinks:
            key, value = self._builder.sinks[topic]
            return key.serde, value
        prefix = max((one for one in self._by_prefix if topic.startswith(one)), key=len)
        source = self._by_prefix[prefix]
        return source.key.serde, value_serde(source.value)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def writers_of(result: BackfillResult) -> dict[str, int]:
    """By topic outside of the application, from how many tasks the partition with the most has its records."""
    counts: dict[TopicPartition, int] = {}
    for outcomes in result.outcomes.values():
        for outcome in outcomes:
            for partition in outcome.written:
                counts[partition] = counts.get(partition, 0) + 1
    found: dict[str, int] = {}
    for partition, writers in counts.items():
        found[partition.topic] = max(found.get(partition.topic, 0), writers)
    return found

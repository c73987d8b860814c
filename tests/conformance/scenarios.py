"""Scenarios for those who run them elsewhere than in the test driver: topology, settings, records by partition."""

from __future__ import annotations

import json
import random
from typing import Any

from pystreams.config import StreamsConfig
from pystreams.partitioning import partition_for_key
from pystreams.topology.topology import Topology
from tests.conformance.builder import ScenarioBuilder, extractor
from tests.conformance.types import TEXT
from tests.live.support import Line

Json = Any

#: What is taken of a scenario's configuration where an application has settings of its own.
_SETTINGS = (
    "application_id",
    "default_key_serde",
    "default_value_serde",
    "default_timestamp_extractor",
    "deserialization_exception_handler",
    "processing_exception_handler",
)
#: A scenario has few records: spread, it is said several times, each later by so much.
_ROUNDS = 3
_ROUND_MS = 40


def topology_of(scenario: Json) -> Topology:
    return ScenarioBuilder(scenario["config"]).build(scenario["steps"])


def config_of(config: Json) -> StreamsConfig:
    """The settings of a scenario by pystreams' names."""
    settings: dict[str, Any] = {
        "application_id": config.get("app_id", "t"),
        "default_key_serde": TEXT,
        "default_value_serde": TEXT,
    }
    if "cache_max_bytes" in config:
        settings["statestore_cache_max_bytes"] = config["cache_max_bytes"]
    if "max_task_idle_ms" in config:
        settings["max_task_idle_ms"] = config["max_task_idle_ms"]
    if "timestamp_extractor" in config:
        settings["default_timestamp_extractor"] = extractor(config["timestamp_extractor"])
    for handler in ("deserialization", "processing"):
        if f"{handler}_handler" in config:
            settings[f"{handler}_exception_handler"] = config[f"{handler}_handler"]
    return StreamsConfig.of(**settings)


def settings_of(scenario: Json) -> dict[str, Any]:
    """Of its settings those that say what records are, and what becomes of bad ones."""
    config = config_of(scenario["config"])
    return {name: getattr(config, name) for name in _SETTINGS}


# Records


def line_of(entry: Json) -> Line:
    """A record of a scenario."""
    key = entry.get("key")
    headers = tuple(
        (name, None if text is None else text.encode()) for name, text in entry.get("headers", ())
    )
    return Line(None if key is None else str(key).encode(), _value(entry), entry.get("ts", 0), headers)


def _value(entry: Json) -> bytes | None:
    if "value_hex" in entry:
        return bytes.fromhex(entry["value_hex"])
    value = entry.get("value")
    if value is None:
        return None
    encoded: bytes = value.to_bytes(8, "big", signed=True) if isinstance(value, int) else str(value).encode()
    return encoded


def input_topics(scenario: Json) -> list[str]:
    """The topics that are read by name."""
    topics = {topic for step in scenario["steps"] for topic in step.get("topics", ())}
    tables = {step["topic"] for step in scenario["steps"] if step["op"] == "table"}
    return sorted(topics | tables | global_topics(scenario))


def output_topics(scenario: Json) -> list[str]:
    """The topics that are written by name."""
    return sorted({step["topic"] for step in scenario["steps"] if step["op"] == "to" and "topic" in step})


def global_topics(scenario: Json) -> set[str]:
    """The topics of global tables."""
    return {step["topic"] for step in scenario["steps"] if step["op"] == "global_table"}


def spread(
    scenario: Json, partitions: int, chance: random.Random, *, first_ms: int = 0
) -> dict[str, list[list[Line]]]:
    """By topic, its partitions with their records; ``first_ms`` is added to all times."""
    spread: dict[str, list[list[Line]]] = {
        topic: [[] for _ in range(partitions)] for topic in input_topics(scenario)
    }
    for number in range(_ROUNDS):
        for entry in scenario["drive"]:
            if entry.get("pipe") in spread:
                line = line_of(entry)
                line = line._replace(timestamp=max(0, line.timestamp) + first_ms + number * _ROUND_MS)
                anywhere = chance.randrange(partitions)
                place = anywhere if line.key is None else partition_for_key(line.key, partitions)
                spread[entry["pipe"]][place].append(line)
    return spread


# Steps


def with_changelogs(scenario: Json) -> Json:
    """The same, with a changelog for each store."""
    steps = json.loads(json.dumps(scenario["steps"]))
    for step in steps:
        for place in (step, step.get("materialized") or {}):
            place.pop("logging", None)
    return {**scenario, "steps": steps}

"""What scenarios may ask for that pystreams does not have yet.

What is added leaves this list; a scenario that needs none of it must agree with Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def missing_operators(scenario: Json) -> list[str]:
    """The names of what the scenario needs and pystreams lacks, sorted."""
    return sorted(_of_config(scenario.get("config", {})))


def pruned(scenario: Json) -> Json:
    """The scenario without the settings that pystreams lacks."""
    config = {name: value for name, value in scenario["config"].items() if not any(_of_config({name: value}))}
    return {**scenario, "config": config}


def _of_config(config: Json) -> Iterator[str]:
    if config.get("store_format", "DEFAULT") != "DEFAULT":
        yield "headers in stores"

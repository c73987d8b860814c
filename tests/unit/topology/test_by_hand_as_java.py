"""Topologies that are written by hand are described as Java describes them, character for character.

What random commands make there was recorded with Kafka Streams 4.3.1.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pystreams import Processor, Stores, Topology

RECORDED = json.loads((Path(__file__).parent / "java_by_hand.json").read_text(encoding="utf-8"))

TEXT: dict[str, Any] = {"key": str, "value": str}


class Idle(Processor[Any, Any, Any, Any]):
    """Does nothing."""


def run(topology: Any, command: str, name: str, *rest: str) -> None:
    """``source NAME TOPIC...``, ``proc NAME PARENT...``, ``global STORE SOURCE TOPIC PROCESSOR``, and so on."""
    store: Any = Stores.key_value_store(name, str, str)
    match command:
        case "source":
            topology.add_source(name, rest, **TEXT)
        case "pattern":
            topology.add_source(name, re.compile(rest[0]), **TEXT)
        case "proc":
            topology.add_processor(name, Idle, *rest)
        case "sink":
            topology.add_sink(name, *rest, **TEXT)
        case "store":
            topology.add_state_store(store, *rest)
        case "connect":
            topology.connect_processor_and_state_stores(name, *rest)
        case "global":
            topology.add_global_store(store, *rest, Idle, **TEXT)
        case "readonly":
            topology.add_read_only_state_store(store, *rest, Idle, **TEXT)


@pytest.mark.parametrize("recorded", RECORDED, ids=range(len(RECORDED)))
def test_what_is_written_by_hand_is_described_as_in_java(recorded: Any) -> None:
    topology = Topology()
    for command in recorded["commands"]:
        run(topology, *command)
    assert topology.describe() == recorded["describe"]

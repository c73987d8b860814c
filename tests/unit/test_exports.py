"""What ``import pystreams`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pystreams

EXPORTED = """
    App BranchedKStream Change CogroupedKStream ConfigError EmitStrategy Expression FixedKeyProcessor GlobalKTable
    JoinWindows JsonSerde KGroupedStream KGroupedTable KStream KTable MsgpackSerde Position
    Processor ProcessorContext ProcessorWrapper PunctuationType Record Serde
    SessionWindowedCogroupedKStream SessionWindowedKStream SessionWindowedSerde SessionWindows SlidingWindows Stores
    Streams StreamsBuilder StreamsConfig StreamsError Suppressed TimeWindowedCogroupedKStream TimeWindowedKStream
    TimeWindowedSerde TimeWindows Topology TopologyError TopologyTestDriver UnlimitedWindows ValueTransformer
    WhenFull Windowed agg field open_log
"""


def test_the_public_names_are_these_and_no_others():
    assert pystreams.__all__ == EXPORTED.split()
    assert pystreams.__all__ == sorted(pystreams.__all__)


@pytest.mark.parametrize("name", EXPORTED.split())
def test_every_public_name_is_there(name):
    assert getattr(pystreams, name) is not None
    assert name in dir(pystreams)


def test_another_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="has no attribute 'KafkaStreams'"):
        _ = pystreams.KafkaStreams


@pytest.mark.parametrize("name", EXPORTED.split())
def test_every_public_name_can_be_the_first(name):
    """Names are imported at their first use, in whatever order that is."""
    program = f"from pystreams import {name} as found; print(found is not None)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


@pytest.mark.parametrize("name", ["agg", "errors", "testing"])
def test_modules_are_there_without_an_import_of_their_own(name):
    program = f"import pystreams; print(pystreams.{name}.__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (f"pystreams.{name}\n", "")


def test_importing_the_language_imports_neither_clients_nor_stores_nor_a_terminal():
    heavy = ("rocksdict", "confluent_kafka", "kafka", "rich", "typer", "sqlite3")
    names = sorted({*EXPORTED.split()} - {"Position", "Stores", "Streams", "TopologyTestDriver", "open_log"})
    program = f"import sys; from pystreams import {', '.join(names)}; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert found.strip() == "[]"

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


#: Imports the first name of each group in a process that has imported nothing else, and then the others of its group.
EACH_FIRST = """
import os, pystreams

for names in {groups}:
    pid = os.fork()
    if not pid:
        exec(f"from pystreams import {{', '.join(names)}}")
        print(*names, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_every_public_name_can_be_the_first():
    """Names are imported at their first use, in whatever order that is: names of one module all import that module."""
    groups = [
        [name for name in names.split() if name != "__version__"] for names in pystreams._MODULES.values()
    ]
    groups = [*filter(None, groups), ["agg"]]
    assert sorted(name for names in groups for name in names) == EXPORTED.split()
    program = EACH_FIRST.format(groups=groups)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout.splitlines(), ran.stderr) == ([" ".join(names) for names in groups], "")


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

"""``import pystreams`` is quick: commands start at once, and worker processes do."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import pytest

LIMIT_MS = 200

#: Of the processor, so that others on the machine do not count.
MEASURE = """
import time
start = time.process_time()
import pystreams
print((time.process_time() - start) * 1000)
"""

#: What has a native library or is large; each is loaded by what needs it.
HEAVY = [
    "rocksdict",
    "confluent_kafka",
    "kafka",
    "rich",
    "typer",
    "click",
    "pydantic",
    "sqlite3",
    "asyncio",
    "pyspark",
]


def python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_takes_less_than_200_ms():
    python(MEASURE)  # Warm: bytecode is compiled, files are in the system's cache.
    assert median(float(python(MEASURE)) for _ in range(10)) < LIMIT_MS


@pytest.mark.parametrize("module", ["pystreams", "pystreams.serde", "pystreams.config", "pystreams.topology"])
def test_importing_loads_nothing_heavy(module):
    loaded = python(f"import sys, {module}; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_a_topology_is_built_and_described_without_anything_heavy():
    loaded = python(
        "import sys, pystreams\n"
        "builder = pystreams.StreamsBuilder()\n"
        "builder.stream('in', key=str, value=str).group_by_key().count(name='counts').to_stream().to('out')\n"
        "builder.build().describe()\n"
        "print(*sys.modules)"
    ).split()
    assert not set(HEAVY) & set(loaded)

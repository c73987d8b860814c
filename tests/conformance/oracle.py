"""The real Kafka Streams, asked through the executable that ``PYSTREAMS_ORACLE`` names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
VARIABLE = "PYSTREAMS_ORACLE"


class OracleError(Exception):
    """There is no oracle, or it did not answer."""


def path() -> Path:
    """The executable. Raises ``OracleError`` if the variable names none."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        raise OracleError(f"{VARIABLE} is not set: it names the oracle's executable")
    found = Path(name)
    if not found.is_file():
        raise OracleError(f"{VARIABLE} names {name}, which is no file")
    return found


def fuzz_scenarios(seed: int, count: int, profile: str = "all") -> list[Json]:
    """Random scenarios, the same for the same arguments."""
    command = [sys.executable, str(path().with_name("fuzz.py")), "--seed", str(seed), "--count", str(count)]
    return _lines(_run([*command, "--profile", profile], ""))


def ask(scenarios: Sequence[Json]) -> list[Json]:
    """What Kafka Streams makes of each scenario."""
    results = _lines(_run([str(path())], "".join(json.dumps(s) + "\n" for s in scenarios)))
    if len(results) != len(scenarios):
        raise OracleError(f"{len(scenarios)} scenarios asked, {len(results)} results given")
    return results


def _run(command: Sequence[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(f"{command[0]} failed ({done.returncode}): {done.stderr.strip()[-2000:]}")
    return done.stdout


def _lines(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]

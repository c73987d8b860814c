"""The real Kafka Streams, asked through the executable that ``PYSTREAMS_ORACLE`` names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

Json = dict[str, Any]
VARIABLE = "PYSTREAMS_ORACLE"

#: It starts more quickly than it would with its code compiled well, and answers some thousand scenarios at most.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"


class OracleError(Exception):
    """There is no oracle, or it did not answer."""


def path() -> Path:
    """The executable. Raises ``OracleError`` if the variable names none."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        raise OracleError(f"{VARIABLE} is not set: it names the oracle's executable")
    found = Path(name)
    if not found.is_file():
        raise OracleError(f"{VARIABLE} names {name}, which is not a file")
    return found


def fuzz_scenarios(seed: int, count: int, profile: str = "all") -> list[Json]:
    """Random scenarios, the same for the same arguments."""
    command = [sys.executable, str(path().with_name("fuzz.py")), "--seed", str(seed), "--count", str(count)]
    done = subprocess.run([*command, "--profile", profile], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(f"{command[1]} failed ({done.returncode}): {done.stderr.strip()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask(scenarios: Sequence[Json]) -> list[Json]:
    """What Kafka Streams makes of each scenario."""
    with Oracle() as oracle:
        return list(oracle.ask(scenarios))


class Oracle:
    """A process that answers one scenario after the other, a few milliseconds each once it runs."""

    def __init__(self) -> None:
        self._errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see __exit__
        self._process = subprocess.Popen(
            [str(path())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "JDK_JAVA_OPTIONS": JAVA_OPTIONS},
        )
        #: Answers that were asked for and not taken yet.
        self._owed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._owed:
            self._process.terminate()
            self._process.wait()
        # It ends with its input.
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def ask(self, scenarios: Iterable[Json]) -> Iterator[Json]:
        """Results as they come, one for each scenario. Raises ``OracleError`` if one does not come."""
        lines = [json.dumps(scenario) + "\n" for scenario in scenarios]
        # Questions and answers may both be more than a pipe holds.
        writer = threading.Thread(target=self._write, args=(lines,), name="oracle-questions", daemon=True)
        writer.start()
        assert self._process.stdout is not None
        self._owed += len(lines)
        for _ in lines:
            answer = self._process.stdout.readline()
            if not answer:
                raise OracleError(f"no answer: {self._last_words()}")
            self._owed -= 1
            yield json.loads(answer)
        writer.join()

    def _write(self, lines: Iterable[str]) -> None:
        assert self._process.stdin is not None
        # Who reads the answers finds out that there are none.
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.writelines(lines)
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return f"it ended with {self._process.returncode}: {self._errors.read().strip()[-2000:]}"

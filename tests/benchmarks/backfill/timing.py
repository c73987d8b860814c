"""How a run reports to its bench what it took: a line of JSON, the last on standard output."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.benchmarks.kafka.processes import ProcessTree


class Took(NamedTuple):
    """Seconds at work, and the CPU seconds of the process and all its children in this time."""

    work_s: float
    cpu_s: float


class Work:
    """When the first records were seen to be done; till then, since this was made."""

    def __init__(self) -> None:
        self._seen = False
        self._begin()

    def seen(self) -> None:
        """Some records are done. A live run, too, is timed from its first commit: what comes before is the start of
        processes, imports and, here, of Spark's first query."""
        if not self._seen:
            self._seen = True
            self._begin()

    def _begin(self) -> None:
        self._began, self._cpu_before_s = time.monotonic(), _cpu_s()

    def took(self) -> Took:
        """What it has taken until now. Children that have ended do not count."""
        return Took(time.monotonic() - self._began, _cpu_s() - self._cpu_before_s)


def _cpu_s() -> float:
    """The CPU time so far of this process and the children that it has now."""
    return ProcessTree([os.getpid()]).read().cpu_s


@contextmanager
def told() -> Iterator[Work]:
    """Time what is inside, and print it at the end: ``{"work_s": 1.5, "cpu_s": 1.25}``."""
    work = Work()
    yield work
    print(json.dumps(work.took()._asdict()), flush=True)


def read_took(output: str) -> Took:
    """What a run has reported."""
    return Took(**json.loads(output.strip().splitlines()[-1]))

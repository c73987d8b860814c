"""How a run tells its bench what it took: a line of JSON, the last on standard output."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def told() -> Iterator[None]:
    """Time what is inside, and print it at the end: ``{"work_s": 1.5}``."""
    began = time.monotonic()
    yield
    print(json.dumps({"work_s": time.monotonic() - began}), flush=True)


def read_work_s(output: str) -> float:
    """The seconds that a run has told."""
    return float(json.loads(output.strip().splitlines()[-1])["work_s"])

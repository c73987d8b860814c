"""How a run tells its bench what it took: a line of JSON, the last on standard output."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Work:
    """When the first records were seen to be done; till then, since this was made."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._seen = False

    def seen(self) -> None:
        """Some records are done. A live run, too, is timed from its first commit: what comes before is the start of
        processes, imports and, here, of Spark's first query."""
        if not self._seen:
            self._seen, self.began = True, time.monotonic()


@contextmanager
def told() -> Iterator[Work]:
    """Time what is inside, and print it at the end: ``{"work_s": 1.5}``."""
    work = Work()
    yield work
    print(json.dumps({"work_s": time.monotonic() - work.began}), flush=True)


def read_work_s(output: str) -> float:
    """The seconds that a run has told."""
    return float(json.loads(output.strip().splitlines()[-1])["work_s"])

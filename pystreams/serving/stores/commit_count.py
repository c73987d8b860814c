"""A count of commits in memory that a supervisor and one of its workers share.

So a supervisor finds out in a microsecond whether an answer of the worker still holds, and asks nobody.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from typing import Final

_BYTES: Final = 8


def shared_memory() -> int:
    """The descriptor of memory for one count, which a child process may inherit. Raises ``OSError``."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pystreams-commits")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    # Written, not only made longer: a page that no disk has room for would end the process that first counts.
    os.write(descriptor, bytes(_BYTES))
    return descriptor


class CommitCount:
    """One process increases it, from any of its threads; both read it."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: that of ``shared_memory``, which may be closed afterwards."""
        # Items of a view are read and written as whole words.
        self._count = memoryview(mmap.mmap(descriptor, _BYTES)).cast("Q")
        self._increasing = threading.Lock()

    def now(self) -> int:
        return self._count[0]

    def increase(self) -> None:
        with self._increasing:
            self._count[0] += 1

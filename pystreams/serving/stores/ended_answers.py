"""A count of answers that hold no longer, in memory that a worker and its supervisor share.

So the supervisor finds out in less than a microsecond whether an answer of the worker still holds, and asks nobody.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from typing import IO, Any, Final

_BYTES: Final = 8


def shared_memory() -> int:
    """The descriptor of memory for one count, which a child process may inherit. Raises ``OSError``."""
    with _file_without_name() as file:
        # The bytes are written, so that the memory is there: a process that cannot get it later is ended by a signal.
        file.write(bytes(_BYTES))
        return os.dup(file.fileno())


def _file_without_name() -> IO[Any]:
    # Only Linux has files in memory, and sandboxes may forbid them.
    try:
        return os.fdopen(os.memfd_create("pystreams-ended-answers"), "wb", buffering=0)
    except (AttributeError, OSError):
        return tempfile.TemporaryFile(buffering=0)


class EndedAnswers:
    """The worker adds to the count, from any of its threads; both processes read it. It never falls."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: that of ``shared_memory``, which may be closed afterwards."""
        # Items of a view are read and written as whole words.
        self._count = memoryview(mmap.mmap(descriptor, _BYTES)).cast("Q")
        self._adding = threading.Lock()

    def count(self) -> int:
        return self._count[0]

    def add(self) -> None:
        """Some answers that were given before hold no longer."""
        with self._adding:
            self._count[0] += 1

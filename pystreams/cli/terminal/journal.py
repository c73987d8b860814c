"""The level of lines for systemd's journal: a number in angle brackets before each line, as sd-daemon(3) says."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Final

#: The priorities of syslog(3), for this level and those above.
_PRIORITIES: Final = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
)
_DEBUG: Final = 7

_PRIORITY: Final = re.compile("<[0-7]>")


def is_journal() -> bool:
    """Whether standard error goes to the journal: systemd names its device and inode. A pipe or a file that it was
    redirected to has others."""
    named = os.environ.get("JOURNAL_STREAM")
    if not named:
        return False
    try:
        status = os.fstat(sys.stderr.fileno())
    except OSError:  # it has no file, as in a notebook
        return False
    return named == f"{status.st_dev}:{status.st_ino}"


def for_journal(text: str, level: int) -> str:
    """The text with the priority of a level before each line, because the journal takes each line for a message."""
    priority = next((priority for least, priority in _PRIORITIES if level >= least), _DEBUG)
    return "\n".join(f"<{priority}>{line}" for line in text.split("\n"))


def parted(line: str) -> tuple[str, str]:
    """The priority before a line, empty if there is none, and the line without it."""
    found = _PRIORITY.match(line)
    return ("", line) if found is None else (found[0], line[found.end() :])

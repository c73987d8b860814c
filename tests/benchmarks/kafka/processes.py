"""What processes and their children use, as the kernel counts it (Linux: ``/proc``)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.linux import fields_of

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
#: How often the tree is looked through for new children, in readings.
_LOOK_AROUND = 10


@dataclass(frozen=True)
class Usage:
    """CPU time since the processes started (user and system), and memory at its highest so far."""

    cpu_s: float
    peak_rss_bytes: int


class ProcessTree:
    """Some processes with their children. What has ended keeps counting with its last reading."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = set(roots)
        self._known = set(self._roots)
        self._last: dict[int, Usage] = {}
        self._readings = 0

    def read(self) -> Usage:
        """The usage of all of them together."""
        if self._readings % _LOOK_AROUND == 0:
            self._known |= _descendants(self._known)
        self._readings += 1
        for pid in self._known:
            usage = _usage(pid)
            if usage is not None:
                self._last[pid] = usage
        return Usage(
            sum(usage.cpu_s for usage in self._last.values()),
            sum(usage.peak_rss_bytes for usage in self._last.values()),
        )


def _stat(pid: int) -> list[str] | None:
    """The fields of a process; None if it is gone."""
    try:
        return fields_of(_PROC / str(pid))
    except (FileNotFoundError, ProcessLookupError):
        return None


def _usage(pid: int) -> Usage | None:
    fields = _stat(pid)
    if fields is None:
        return None
    cpu_s = (int(fields[11]) + int(fields[12])) * _TICK_S
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    high = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    if high is None:  # a zombie holds no memory
        return None
    return Usage(cpu_s, int(high.split()[1]) * 1024)


def _descendants(roots: set[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = set(), list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found

"""How soon an application goes on after a kill."""

from __future__ import annotations

import os
from collections.abc import Callable

ATTEMPTS = 3
#: However busy the machine is: a promise of some seconds times this is still far less than a session of 45 s.
BUSY_MAX = 4.0


def promptly(kill: Callable[[], float], promised_s: float, what: str) -> None:
    """``kill`` kills a process and gives the seconds until all goes on. That is within the promise, times the processes
    that each core has to run, within reason. Other work may hold one kill up for longer; a defect holds up each."""
    took: list[float] = []
    for _ in range(ATTEMPTS):
        busy = min(BUSY_MAX, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
        took.append(kill())
        print(f"all partitions go on {took[-1]:.1f} s after {what}; {busy:.1f} processes for each core")
        if took[-1] < promised_s * busy:
            return
    raise AssertionError(f"all partitions go on {took} s after {what}, and not within {promised_s} s")

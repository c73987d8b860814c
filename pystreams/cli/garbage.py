"""Garbage collections leave out the objects that live as long as the process."""

from __future__ import annotations

import gc
from typing import Final

#: After how many new objects the youngest generation is collected while a command starts.
_WHILE_STARTING: Final = 50_000
_USUAL: Final = gc.get_threshold()


def collect_rarely() -> None:
    """While a command starts, nearly everything that is made is a module or belongs to one. Collections would look at
    all of it again and again, for a tenth of the time of a start."""
    gc.set_threshold(_WHILE_STARTING, *_USUAL[1:])


def leave_out_what_stays() -> None:
    """Leave out what is there now: modules, functions and the program. From now on collect as usual, unless the program
    has its own thresholds.

    A full collection looks at every object, and no thread can run meanwhile. With these it takes 50 to 120 ms, every
    few seconds while records are processed, and a query waits as long. What is garbage already is kept, too: it is less
    than a thousand small objects, and to look for them would take 30 ms.
    """
    gc.freeze()
    if gc.get_threshold()[0] == _WHILE_STARTING:
        gc.set_threshold(*_USUAL)

"""Shows the progress of a backfill that a program runs: in a notebook below the cell, otherwise on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pystreams.backfill.compute.driver import OnProgress
from pystreams.backfill.display.notebook import NotebookDisplay
from pystreams.backfill.display.slice_meter import titles
from pystreams.backfill.display.terminal import BarDisplay
from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.clock import SystemClock
from pystreams.user_code import in_notebook


@contextmanager
def showing(progress: OnProgress | bool, plan: BackfillPlan, left: str) -> Iterator[OnProgress | None]:
    """The function that the driver calls with the progress of its tasks: ``progress`` itself if it is a function. True:
    one that shows bars in a notebook or on a terminal, or None where there is neither; False: None.

    ``left`` is the text that a notebook shows if the backfill has stopped: it describes the remaining work.
    """
    if not isinstance(progress, bool):
        yield progress
    elif progress and in_notebook():
        with NotebookDisplay(SystemClock(), titles(plan), left) as shown:
            yield shown.update
    elif progress and sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        with BarDisplay(SystemClock(), Console(stderr=True, highlight=False)) as bars:
            bars.expect(titles(plan))
            yield bars.update
    else:
        yield None

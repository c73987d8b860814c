"""The last line of ``run``: the number of processed records, and of records that were left out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pystreams.cli.terminal.logs import command_log
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.left_out import totals_text
from pystreams.meter import Meter


def log_last_line(
    meter: Meter,
    left_out: Mapping[str, int],
    late: Sequence[LateRecords],
    *,
    failed: bool,
    workers: str = "",
) -> None:
    """Log the line; as a warning, which ``--quiet`` shows, too, if records were left out or the run has failed."""
    ending = "Stopped by a failure" if failed else "Stopped, and all is committed"
    numbers = f"{counted(meter.processed, 'record')} in {meter.elapsed_s():.1f} s"
    text = "; ".join(
        part for part in (", ".join(filter(None, (numbers, workers))), totals_text(left_out, late)) if part
    )
    wrong = failed or bool(left_out)
    fields = {
        "records": meter.processed,
        "elapsed_s": round(meter.elapsed_s(), 3),
        "left_out": dict(left_out),
        "late": [one._asdict() for one in late],
    }
    level = logging.WARNING if wrong else logging.INFO
    command_log.log(level, "%s: %s.", ending, text, extra={"fields": fields})


def counted(number: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""The last line of ``run``: the number of processed records, of records that were left out, and the joins that have
found nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pystreams.cli.terminal.logs import command_log
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.left_out import totals_text
from pystreams.engine.failures.unmatched import Unmatched, never_found, unmatched_text
from pystreams.meter import Meter
from pystreams.plural import counted


class LastCounts(NamedTuple):
    """Of a client, or of all workers: the records from internal topics, which the meter does not count; those that were
    left out, by their fate; those that were too late, by step; and the joins."""

    internal: int
    left_out: Mapping[str, int]
    late: Sequence[LateRecords]
    joins: Sequence[Unmatched]


def log_last_line(meter: Meter, counts: LastCounts, *, failed: bool, workers: str = "") -> None:
    """Log the line; as a warning, which ``--quiet`` shows, too, if records were left out, a join has found nothing, or
    the run has failed."""
    left_out, late = counts.left_out, counts.late
    in_vain = never_found(counts.joins)
    ending = "Stopped by a failure" if failed else "Stopped, and all is committed"
    records = counted(meter.processed, "record")
    if counts.internal:
        records += f", and {counts.internal:,} from internal topics,"
    numbers = f"{records} in {meter.elapsed_s():.1f} s"
    parts = (
        ", ".join(filter(None, (numbers, workers))),
        totals_text(left_out, late),
        unmatched_text(in_vain),
    )
    text = "; ".join(filter(None, parts))
    wrong = failed or bool(left_out or late or in_vain)
    fields = {
        "records": meter.processed,
        "internal_records": counts.internal,
        "elapsed_s": round(meter.elapsed_s(), 3),
        "left_out": dict(left_out),
        "late": [one._asdict() for one in late],
        "joins_in_vain": [one.as_fields for one in in_vain],
    }
    level = logging.WARNING if wrong else logging.INFO
    command_log.log(level, "%s: %s.", ending, text, extra={"fields": fields})

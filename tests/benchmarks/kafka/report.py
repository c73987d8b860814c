"""What came out, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks.kafka.running import Result

#: Whom all others are compared with.
REFERENCE = "java"

TITLES = {
    "stateless": "stateless JSON",
    "wordcount": "word count",
    "windows": "windowed sum",
    "join": "stream-table join",
}

COLUMNS = (
    "job", "peer", "threads", "records/s", "spread", "x java", "CPU µs/record", "CPU x java", "cores", "broker cores",
    "peak MiB", "steady s", "runs",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """All runs of one peer on one job: medians. ``ratio`` and ``cpu_ratio`` are to the reference with as many threads:
    above 1 the peer is faster, below 1 it needs less CPU."""

    job: str
    peer: str
    threads: int
    rate: float
    rate_min: float
    rate_max: float
    cpu_us: float
    cores: float
    broker_cores: float
    peak_rss_bytes: int
    steady_s: float
    runs: int
    ratio: float | None
    cpu_ratio: float | None


def rows(results: Sequence[Result]) -> list[Row]:
    """A row for each peer on each job, in the order in which they were first run."""
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        groups.setdefault((result.job, result.peer, result.threads), []).append(result)
    found = []
    for (job, peer, threads), runs in sorted(groups.items(), key=lambda group: _order(group[0])):
        reference = groups.get((job, REFERENCE, threads), [])
        rate, cpu_us = median(r.rate for r in runs), median(r.cpu_us for r in runs)
        found.append(
            Row(
                job=job,
                peer=peer,
                threads=threads,
                rate=rate,
                rate_min=min(r.rate for r in runs),
                rate_max=max(r.rate for r in runs),
                cpu_us=cpu_us,
                cores=median(r.cores for r in runs),
                broker_cores=median(r.broker_cores for r in runs),
                peak_rss_bytes=max(r.peak_rss_bytes for r in runs),
                steady_s=min(r.steady.seconds for r in runs),
                runs=len(runs),
                ratio=_ratio(rate, [r.rate for r in reference]),
                cpu_ratio=_ratio(cpu_us, [r.cpu_us for r in reference]),
            )
        )
    return found


def _ratio(found: float, reference: Sequence[float]) -> float | None:
    """None without a reference, and where it was too short to be seen (CPU is counted in hundredths of a second)."""
    return found / median(reference) if reference and median(reference) else None


def _order(group: tuple[str, str, int]) -> tuple[int, int]:
    job, _, threads = group
    return list(TITLES).index(job), threads


def cells(row: Row) -> list[str]:
    """A row as text, in the order of ``COLUMNS``."""
    return [
        TITLES[row.job],
        row.peer,
        str(row.threads),
        f"{row.rate:,.0f}",
        f"{row.rate_min / row.rate - 1:+.0%} {row.rate_max / row.rate - 1:+.0%}" if row.runs > 1 else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        f"{row.cpu_us:.2f}",
        "" if row.cpu_ratio is None else f"{row.cpu_ratio:.2f}",
        f"{row.cores:.2f}",
        f"{row.broker_cores:.2f}",
        f"{row.peak_rss_bytes / (1 << 20):,.0f}",
        f"{row.steady_s:.0f}",
        str(row.runs),
    ]


def show(console: Console, found: Iterable[Row]) -> None:
    """Print the table, a section for each job."""
    table = Table(padding=(0, 0))
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if number < 2 else "right", no_wrap=number == 0)
    job = ""
    for row in found:
        if job and row.job != job:
            table.add_section()
        job = row.job
        table.add_row(*cells(row))
    console.print(table)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Each run, and the rows made of them."""
    return {
        "rows": [asdict(row) for row in rows(results)],
        "runs": [{**asdict(r), "rate": r.rate, "cpu_us": r.cpu_us} for r in results],
    }

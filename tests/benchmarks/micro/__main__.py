"""``python -m tests.benchmarks.micro [SECTION ...]``: the table of micro-benchmarks beside the design's budgets."""

from __future__ import annotations

import sys
from importlib import import_module

from tests.benchmarks.micro.measure import measure, table

SECTIONS = {
    "codecs": "Codecs",
    "chain": "Chain: stateless steps, compiled",
    "order": "Order: two partitions of a task, per record",
    "cache": "Cache: aggregates, per record",
    "store": "Stores without a cache",
}


def main(chosen: list[str]) -> int:
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        print(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    for name in chosen or SECTIONS:
        with import_module(f"tests.benchmarks.micro.{name}").cases() as cases:
            print(table(SECTIONS[name], measure(cases)), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""How the micro-benchmarks measure: interleaved rounds, and a reference loop in each round to compare with.

A machine's speed changes from minute to minute, and from machine to machine; the ratio to a loop that ran in the same
round changes far less. A budget is a time on the machine that the design was made on, and so is held against as its
ratio to the time of the reference loop there.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

#: What the reference loop takes per record on the machine that the design was made on. It was not run there: 41 ns on
#: another machine, times 1.7, because what was measured on both took 1.65 (codecs) to 1.9 (dict) times as long there.
REFERENCE_NS = 70.0

ROUNDS = 9


@dataclass(frozen=True)
class Case:
    """``run()`` does ``operations`` times what is measured, after ``before()`` has made it possible anew.

    ``baseline`` is run before it and subtracted, where the cost is that of what comes on top. ``budget_ns`` is for one
    operation.
    """

    name: str
    run: Callable[[], object]
    operations: int
    budget_ns: float | None = None
    baseline: Callable[[], object] | None = None
    before: Callable[[], object] | None = None


@dataclass(frozen=True)
class Result:
    """The least of all rounds: nanoseconds for one operation, and their ratio to one record of the reference loop."""

    case: Case
    ns: float
    ratio: float

    @property
    def budget_ratio(self) -> float | None:
        return None if self.case.budget_ns is None else self.case.budget_ns / REFERENCE_NS


_WORDS = [f"word-{i * i % 997}" for i in range(20_000)]


def reference_loop() -> dict[str, int]:
    """What plain Python does to count words: a look-up, an addition and an insertion for each."""
    counts: dict[str, int] = {}
    for word in _WORDS:
        counts[word] = counts.get(word, 0) + 1
    return counts


def measure(cases: Sequence[Case], rounds: int = ROUNDS) -> list[Result]:
    """Run all cases round by round, beside the reference loop, with the garbage collector off.

    The least time of each counts: what else the machine does can only add to it.
    """
    reference = min(_time(reference_loop) for _ in range(5))
    least = [(float("inf"), float("inf"))] * len(cases)
    for _ in range(rounds):
        for i, case in enumerate(cases):
            reference = min(reference, _time(reference_loop))
            if case.before is not None:
                case.before()
            base = _time(case.baseline) if case.baseline is not None else 0
            least[i] = (min(least[i][0], _time(case.run)), min(least[i][1], base))
    per_record = reference / len(_WORDS)
    found = []
    for case, (taken, base) in zip(cases, least, strict=True):
        ns = (taken - base) / case.operations
        found.append(Result(case, ns, ns / per_record))
    return found


def _time(run: Callable[[], object]) -> int:
    gc.collect()
    gc.disable()
    try:
        start = perf_counter_ns()
        run()
        return perf_counter_ns() - start
    finally:
        gc.enable()


def table(title: str, results: Iterable[Result]) -> str:
    """The results for people, a line each: time, ratio to the reference loop, budget and how much of it is used."""
    rows = [("", "ns", "x reference", "budget ns", "used")]
    for r in results:
        used = "" if r.budget_ratio is None else f"{r.ratio / r.budget_ratio:.0%}"
        budget = "" if r.case.budget_ns is None else f"{r.case.budget_ns:,.0f}"
        rows.append((r.case.name, f"{r.ns:,.0f}", f"{r.ratio:.2f}", budget, used))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([title, *lines])

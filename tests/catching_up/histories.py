"""Random histories and topologies, decided by a seed: partitions that are slow, end early, start late or have a gap."""

from __future__ import annotations

import random
from typing import Any, Literal

import msgspec

from tests.catching_up.reference import Stream, arrived, computed, lateness_ms
from tests.catching_up.trials import (
    BEGIN_MS,
    Emission,
    Event,
    History,
    Join,
    Rekey,
    Run,
    Step,
    Table,
    Trial,
    Windows,
)

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

_SHAPES = ("windows", "windows", "two hops", "two hops with windows", "three hops", "join", "join, windows")

#: What may be special about one partition.
_SPECIAL = ("ends early", "starts late", "dense", "sparse", "gap", "empty")


def trial(seed: int, log: Literal["embedded", "kafka"] = "embedded", **run: Any) -> Trial:
    """The trial of a seed. ``run`` has what is not to be left to chance of how it runs."""
    chance = random.Random(f"catching up {seed}")
    partitions = chance.choice((1, 2, 3, 4, 4, 6, 8))
    hours = chance.choice((2, 6, 48))
    records = chance.randint(40, 90) * partitions + 60
    grace = chance.choice((10 * SECOND, MINUTE))
    # None, some, or as much as may be.
    disorder = chance.choice((0, grace // 3, grace))
    grid = chance.choice((1, SECOND, 5 * SECOND))
    shape = chance.choice(_SHAPES)
    gap_everywhere = chance.random() < 0.2
    special = {
        chance.randrange(partitions): chance.choice(_SPECIAL)
        for _ in range(chance.randint(0, 2))
        if partitions > 1
    }
    spacing = hours * HOUR // records

    def history(prefix: str) -> History:
        moments = _moments(chance, partitions, records, hours * HOUR, special)
        return [
            _events(chance, f"{prefix}{number}", _spread(times, hours, gap_everywhere), disorder, grid)
            for number, times in enumerate(moments)
        ]

    nothing: History = [[] for _ in range(partitions)]
    left = history("a")
    right = history("b") if "join" in shape else nothing
    steps = _steps(chance, shape, partitions, grace, spacing)
    rows = nothing
    if chance.random() < 0.25:
        rows, steps = _rows(chance, left, grid), [Table(chance.random() < 0.5), *steps]
    found = in_time(Trial(seed, left, right, rows, steps, Run(log)))
    return msgspec.structs.replace(found, run=random_run(found, chance, log, **run))


# Histories


def _moments(
    chance: random.Random, partitions: int, records: int, whole_ms: int, special: dict[int, str]
) -> list[list[float]]:
    """When records come, by partition."""
    found = []
    for partition in range(partitions):
        what = special.get(partition)
        weight = {"dense": 4.0, "sparse": 0.2, "empty": 0.0}.get(what or "", 1.0)
        begin, end = {"ends early": (0.0, 0.3), "starts late": (0.7, 1.0)}.get(what or "", (0.0, 1.0))
        count = round(records / partitions * weight)
        times = sorted(whole_ms * chance.uniform(begin, end) for _ in range(count))
        if what == "gap":
            times = [time for time in times if not 0.3 < time / whole_ms < 0.7]
        found.append(times)
    return found


def _spread(times: list[float], hours: int, gap_everywhere: bool) -> list[float]:
    """With a month in which nothing happens anywhere, if so."""
    middle = hours * HOUR / 2
    return [time + 30 * 24 * HOUR if gap_everywhere and time > middle else time for time in times]


def _events(chance: random.Random, name: str, times: list[float], disorder: int, grid: int) -> list[Event]:
    """Records that come at these times, of which some are late, but at most by ``disorder``."""
    events = []
    for number, time in enumerate(times):
        late = chance.choice((disorder, chance.uniform(0, disorder))) if chance.random() < 0.3 else 0
        at = BEGIN_MS + HOUR + int(time - late)
        events.append(Event(at - at % grid, f"{name}.{chance.randrange(3)}", f"{name}.{number}"))
    return events


def _rows(chance: random.Random, left: History, grid: int) -> History:
    """A table beside a history: rows from the beginning, some that change, one key without a row."""
    rows = []
    for number, events in enumerate(left):
        keys = [f"a{number}.{key}" for key in range(2)]
        of_partition = [Event(BEGIN_MS, key, f"{key}-first") for key in keys]
        # Halfway between two moments at which records come: which of them is first is no matter of taste.
        moments = [event.time for event in events]
        later = sorted(chance.sample(moments, min(4, len(moments))))
        of_partition += [
            Event(time + 1, chance.choice(keys), f"row{number}-{n}")
            for n, time in enumerate(later)
            if grid > 1
        ]
        rows.append(of_partition)
    return rows


# Topologies


def _steps(chance: random.Random, shape: str, partitions: int, grace: int, spacing: int) -> list[Step]:
    """The steps of a shape, behind the join with a table. ``spacing``: from one record to the next, in ms."""
    keys = chance.choice((1, 3, 6))

    def hop() -> Rekey:
        of_hop = chance.choice((partitions, partitions, 1, 3))
        return Rekey(chance.randrange(1000), keys, of_hop)

    def final() -> Windows:
        return _windows(chance, grace, spacing * keys, chance.choice(("update", "close", "suppress")))

    def middle() -> Windows:
        return _windows(chance, grace, spacing * keys, chance.choice(("close", "suppress")))

    match shape:
        case "windows":
            return [hop(), final()]
        case "two hops":
            return [hop(), hop(), final()]
        case "two hops with windows":
            return [hop(), middle(), hop(), final()]
        case "three hops":
            return [hop(), hop(), middle(), hop(), final()]
        case "join":
            return [hop(), _join(chance, grace, spacing * keys)]
        case _:
            join, windows = _join(chance, grace, spacing * keys), final()
            if join.kind != "inner":
                # At the end it is open which records without a match come, and with them whose windows there are.
                windows = msgspec.structs.replace(windows, kind=chance.choice(("tumbling", "hopping")))
            return [hop(), join, hop(), windows]


def _windows(chance: random.Random, grace: int, spacing: int, emission: Emission) -> Windows:
    kind = chance.choice(("tumbling", "hopping", "sliding", "session"))
    # Sessions must end, the others may well have several records.
    size = int(spacing * chance.choice((0.3, 0.7) if kind == "session" else (0.5, 2, 5)))
    return Windows(kind, size, size // chance.choice((2, 3)), grace, emission)


def _join(chance: random.Random, grace: int, spacing: int) -> Join:
    kind, size = chance.choice(("inner", "left", "outer")), int(spacing * chance.choice((0.3, 1)))
    # Which side makes time move decides when Java looks at records without a match, if the sides differ.
    before, after = chance.choice(((1, 1), (0, 2), (3, 1))) if kind == "inner" else (1, 1)
    return Join(kind, before * size, after * size, grace)


def in_time(one: Trial) -> Trial:
    """With a grace of each step that keeps all that comes to it if sources are read in the order of time."""
    kept: list[Step] = []
    for step in one.steps:
        match step:
            case Windows():
                late = _lateness_ms(msgspec.structs.replace(one, steps=kept))
                # One more: suppressed sessions and sliding windows are final a millisecond before they are closed.
                kept.append(msgspec.structs.replace(step, grace_ms=max(step.grace_ms, late + 1)))
            case Join():
                late = _lateness_ms(msgspec.structs.replace(one, steps=kept), joins=True)
                step = msgspec.structs.replace(step, grace_ms=max(step.grace_ms, late))
                if step.kind != "inner":
                    # What comes late by more than that is joined with nobody at once, and then with its match.
                    size = max(step.before_ms, late)
                    step = msgspec.structs.replace(step, before_ms=size, after_ms=size)
                kept.append(step)
            case _:
                kept.append(step)
    return msgspec.structs.replace(one, steps=kept)


def _lateness_ms(one: Trial, *, joins: bool = False) -> int:
    """How far out of order the results of a trial are, those of both sides where they are to be joined."""
    left = computed(one, one.steps)[0]
    right: Stream = {}
    if joins:
        hops = [step for step in one.steps if isinstance(step, Rekey)]
        right = computed(msgspec.structs.replace(one, left=one.right), hops)[0]
    return max((lateness_ms([*left.get(p, ()), *right.get(p, ())]) for p in {*left, *right}), default=0)


# Runs


def random_run(found: Trial, chance: random.Random, log: Literal["embedded", "kafka"], **given: Any) -> Run:
    """How a trial runs, as far as it is not given."""
    records = sum(map(len, found.left + found.right))
    times = sorted(rec.moment for recs in arrived(found.left).values() for rec in recs)
    kills = [chance.randint(1, max(1, records)) for _ in range(chance.choice((0, 0, 1, 3)))]
    drawn = {
        "threads": chance.choice((1, 1, 2, 4)),
        "workers": chance.choice((1, 1, 2, 3)),
        "commit_interval_ms": chance.choice((10, 100, 1_000, 30_000)),
        "cache_bytes": chance.choice((0, 5_000, 10_000_000)),
        "kills": tuple(kills),
        "wiped": chance.random() < 0.5,
        "outage_ms": chance.choice(times) if times and chance.random() < 0.3 else None,
        "slow_partition": chance.choice((None, None, chance.randrange(len(found.left)))),
    }
    return Run(log, **{**drawn, **given})

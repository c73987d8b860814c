"""Random histories of tables that change, and of streams that are joined with them behind a repartition topic."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from pystreams.partitioning import partition_for_key
from tests.catching_up.histories import HOUR, MINUTE, SECOND, in_time, random_run
from tests.catching_up.reference import arrived, in_order, rekeyed
from tests.catching_up.trials import (
    BEGIN_MS,
    OTHER_KEYS,
    Changing,
    Event,
    History,
    Lookup,
    Rekey,
    Run,
    Step,
    Trial,
    Versions,
    Windows,
)

_SHAPES = ("versions", "versions", "versions, windows", "global", "aggregate", "join", "foreign")


def table_trial(seed: int, log: Literal["embedded", "kafka"] = "embedded", **run: Any) -> Trial:
    """The trial of a seed. ``run`` has what is not to be left to chance of how it runs."""
    chance = random.Random(f"catching up with tables {seed}")
    partitions = chance.choice((1, 2, 4, 6))
    hours = chance.choice((2, 48))
    count = chance.randint(30, 60) * partitions + 60
    grace = chance.choice((10 * SECOND, MINUTE))
    disorder = chance.choice((0, grace // 2))
    keys = chance.choice((1, 3, 6))
    shape = chance.choice(_SHAPES)
    nothing: History = [[] for _ in range(partitions)]
    names = [[f"a{p}.{n}" for n in range(3)] for p in range(partitions)]
    left = _history(chance, names, count, hours, disorder)
    right, rows = nothing, nothing
    hop = Rekey(chance.randrange(1000), keys, partitions)
    match shape:
        case "aggregate" | "join" | "foreign":
            left = _deleting(chance, left)
            if shape != "aggregate":
                others = _by_partition(OTHER_KEYS[1:], partitions)
                right = _deleting(chance, _history(chance, others, count // 2, hours, disorder))
            steps: list[Step] = [Changing(shape, chance.choice(("inner", "left")), hop)]
        case "global":
            rows = _history(
                chance, _by_partition([f"k{n}" for n in range(keys)], partitions), count, hours, 0
            )
            steps = [hop, Lookup(chance.random() < 0.5)]
        case _:
            rows = _history(
                chance, _by_partition([f"k{n}" for n in range(keys)], partitions), count, hours, disorder
            )
            steps = [hop, Versions(chance.random() < 0.5, grace, _history_ms(left, rows, hop, grace))]
            if shape == "versions, windows":
                size = hours * HOUR // count * keys * chance.choice((1, 4))
                emission = chance.choice(("update", "close", "suppress"))
                again = Rekey(chance.randrange(1000), keys, chance.choice((partitions, 3)))
                steps += [again, Windows("tumbling", size, size, grace, emission)]
    found = in_time(Trial(seed, left, right, rows, steps, Run(log)))
    drawn = random_run(found, chance, log, **run)
    if shape == "global":
        # A global table is read as far as it goes before anything else: without what comes after an outage.
        drawn = msgspec.structs.replace(drawn, outage_ms=None)
    return msgspec.structs.replace(found, run=drawn)


def _history(chance: random.Random, keys: list[list[str]], count: int, hours: int, disorder: int) -> History:
    """Records or rows of these keys, by partition, of which some are late, but at most by ``disorder``."""
    wide = [number for number, of_partition in enumerate(keys) if of_partition]
    slow = chance.choice(wide)
    found: History = [[] for _ in keys]
    for number in wide:
        begin, end = (0.5, 1.0) if number == slow and chance.random() < 0.5 else (0.0, 1.0)
        times = sorted(hours * HOUR * chance.uniform(begin, end) for _ in range(count // len(wide)))
        for place, time in enumerate(times):
            late = chance.uniform(0, disorder) if chance.random() < 0.3 else 0
            key = chance.choice(keys[number])
            found[number].append(Event(BEGIN_MS + HOUR + int(time - late), key, f"{key}-{number}-{place}"))
    return found


def _by_partition(keys: Sequence[str], partitions: int) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(partitions)]
    for key in keys:
        found[partition_for_key(key.encode(), partitions)].append(key)
    return found


def _deleting(chance: random.Random, history: History) -> History:
    """Some rows are deleted: those without an id."""
    return [
        [msgspec.structs.replace(event, id="") if chance.random() < 0.15 else event for event in events]
        for events in history
    ]


def _history_ms(left: History, rows: History, hop: Rekey, grace: int) -> int:
    """How long versions are looked up after their time if all comes in the order of time: until the first record that
    makes the waiting one go on, and the rows before that."""
    gaps = [0]
    for recs in rekeyed(arrived(left), hop).values():
        gaps += [later.moment - rec.moment for rec, later in pairwise(in_order(recs))]
    return 4 * grace + max(gaps)

"""Random scenarios through pystreams and through Kafka Streams; what differs is shrunk and kept."""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import random
import re
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance import golden, oracle
from tests.conformance.compare import difference
from tests.conformance.deliberate import meant_difference
from tests.conformance.progress import shown
from tests.conformance.runner import run
from tests.conformance.shrink import shrink
from tests.conformance.variation import varied

Json = Any

#: Of a hundred scenarios. The oracle's own generator has all but the last, which varies what that makes.
MIXED = {"all": 36, "stateless": 4, "windows": 8, "joins": 8, "tables": 6, "processors": 8, "varied": 30}
PROFILES = ("mixed", *MIXED)
#: Of one run; more have the same reasons as a rule.
_SHRUNK_MAX = 10

ROOT = Path(__file__).resolve().parents[2]


class Settings(NamedTuple):
    """How to compare: up to a level, in so many processes."""

    level: int
    workers: int
    #: Where what differs is kept.
    folder: Path = golden.FOUND


def fresh_seed() -> int:
    """Another one every time."""
    return random.SystemRandom().randrange(1 << 31)


def commit_seed(root: Path = ROOT) -> int:
    """From the commit's hash; where git does not tell, from the text of all modules of pystreams."""
    told = subprocess.run(
        ["git", "rev-parse", "--verify", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    text = told.stdout.strip()
    if told.returncode:
        whole = hashlib.sha256()
        for path in sorted((root / "pystreams").rglob("*.py")):
            whole.update(path.read_bytes())
        text = whole.hexdigest()
    return int(text[:8], 16)


def scenarios(seed: int, count: int, profile: str) -> list[Json]:
    """Random ones; the same for the same arguments. Raises ``OracleError`` where there is no generator."""
    if profile == "mixed":
        ends = [0]
        for share in MIXED.values():
            ends.append(ends[-1] + share)
        counts = [count * end // ends[-1] for end in ends]
        return [
            scenario
            for name, start, end in zip(MIXED, counts, counts[1:], strict=False)
            if end > start
            for scenario in scenarios(seed, end - start, name)
        ]
    if profile == "varied":
        # Not those that "all" has for the same seed.
        bases = oracle.fuzz_scenarios(zlib.crc32(f"varied {seed}".encode()), count, "all")
        made = [varied(base, f"{seed}/{number}") for number, base in enumerate(bases)]
    else:
        made = oracle.fuzz_scenarios(seed, count, profile)
    return [{**one, "name": f"{profile}/{seed}/{number}"} for number, one in enumerate(made)]


def compare(asked: Sequence[Json], settings: Settings) -> int:
    """0: all agree; 1: at least one differs. Raises ``OracleError``."""
    meant: Counter[str] = Counter()
    differ: list[Json] = []
    with oracle.Oracle() as java:
        pairs = zip(asked, java.ask(asked), _run_all(asked, settings.workers), strict=True)
        for scenario, theirs, ours in shown(pairs, len(asked), "scenarios"):
            found = difference(theirs, ours, settings.level)
            if found and (why := meant_difference(scenario, theirs, settings.level)):
                meant[why] += 1
            elif found:
                differ.append(scenario)
                print(f"{scenario['name']}: {found}\n  {json.dumps(scenario)}", flush=True)
        for scenario in differ[:_SHRUNK_MAX]:
            _keep_shrunk(scenario, java, settings)
    agree = len(asked) - len(differ) - meant.total()
    print(f"level {settings.level}: {agree} agree, {len(differ)} differ")
    for why, count in meant.most_common():
        print(f"{count:5} differ on purpose: {why}")
    return 1 if differ else 0


def _keep_shrunk(scenario: Json, java: oracle.Oracle, settings: Settings) -> None:
    def told(theirs: Json, ours: Json) -> str | None:
        return difference(theirs, ours, settings.level)

    [theirs] = java.ask([scenario])
    before = told(theirs, run(scenario))
    if before is None:
        print(f"{scenario['name']}: agrees when it is asked again")
        return
    small = shrink(scenario, first_that_differs(lambda asked: list(java.ask(asked)), run, told, before))
    [theirs] = java.ask([small])
    after = told(theirs, run(small))
    small = {**small, "name": f"found/{scenario['name'].replace('/', '-')}", "note": after}
    path = golden.keep(golden.Case(small, {**theirs, "name": small["name"]}), settings.folder)
    print(f"{scenario['name']}: shrunk and kept as {path}: {after}\n  {json.dumps(small)}", flush=True)


def first_that_differs(
    ask: Callable[[Sequence[Json]], Sequence[Json]],
    run_ours: Callable[[Json], Json],
    told: Callable[[Json, Json], str | None],
    before: str,
) -> Callable[[Sequence[Json]], int | None]:
    """For ``shrink``: which of some scenarios differs first, in the same part of the result as ``before`` and not on
    purpose."""

    def first(candidates: Sequence[Json]) -> int | None:
        answers = ask(candidates)
        for place, (candidate, theirs) in enumerate(zip(candidates, answers, strict=True)):
            found = told(theirs, run_ours(candidate))
            if found and _part(found) == _part(before) and not meant_difference(candidate, theirs):
                return place
        return None

    return first


def _part(told: str) -> str:
    """``stores`` of ``stores.S.entries[0]: expected ...``; of an error, which of the two has it, and its class."""
    part = told.partition(":")[0].partition(".")[0].partition("[")[0]
    if part != "error":
        return part
    return " ".join([part, *re.findall(r"expected null|got null|\"class\": \"[^\"]*", told)])


def _run_all(scenarios: Iterable[Json], workers: int) -> Iterator[Json]:
    if workers < 2:
        yield from map(run, scenarios)
        return
    # Spawned, not forked: RocksDB holds threads.
    context = multiprocessing.get_context("spawn")
    silenced = partial(logging.disable, logging.CRITICAL)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=silenced) as pool:
        yield from pool.map(run, scenarios, chunksize=10)

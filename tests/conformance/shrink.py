"""Makes a scenario as small as it can be while something stays true of it.

Records go in halves, quarters and one by one; steps with all that stands on them, or alone, what follows taking their
input; then settings, options, and what lists have too much, until nothing more can go.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

Json = Any
#: Of some scenarios, the place of the first for which it is still true; None if it is for none.
FirstThat = Callable[[Sequence[Json]], int | None]

#: Asked at once: an answer costs milliseconds, and the first that will do is taken.
_BATCH = 16
#: A scenario that is still not small after so many is small enough.
_CANDIDATES_MAX = 3_000
#: What a step cannot be without.
_NEEDED = frozenset({"id", "op", "from", "with"})


def shrink(scenario: Json, first_that: FirstThat, candidates_max: int = _CANDIDATES_MAX) -> Json:
    """The smallest scenario that was found, ``scenario`` itself if nothing may go."""
    left = candidates_max
    smaller = True
    while smaller:
        smaller = False
        for reductions in (_fewer_records, _fewer_steps, _less_of_each_step, _simpler_records):
            # From where the last one was found: what stood before it was tried already.
            tried = 0
            while left > 0:
                batch = list(islice(reductions(scenario), tried, tried + _BATCH))
                left -= len(batch)
                found = first_that(batch) if batch else None
                if found is not None:
                    scenario, smaller, tried = batch[found], True, tried + found
                elif len(batch) < _BATCH:
                    break
                else:
                    tried += len(batch)
    return scenario


def _fewer_records(scenario: Json) -> Iterator[Json]:
    drive = scenario["drive"]
    size = len(drive)
    while size:
        for start in range(0, len(drive), size):
            yield {**scenario, "drive": drive[:start] + drive[start + size :]}
        size //= 2


def _fewer_steps(scenario: Json) -> Iterator[Json]:
    steps = scenario["steps"]
    for place in range(len(steps)):
        yield _standing({**scenario, "steps": steps[:place] + steps[place + 1 :]})
    for place, step in enumerate(steps):
        for field in ("from", "with"):
            if field in step:
                rest = [_reading(one, _results(step), step[field]) for one in steps]
                yield _standing({**scenario, "steps": rest[:place] + rest[place + 1 :]})


def _results(step: Json) -> set[str]:
    """The ids of what a step gives."""
    results = (step, *step.get("branches", ()), step.get("default", {}))
    return {result["id"] for result in results if "id" in result}


def _reading(step: Json, old: set[str], new: str) -> Json:
    """A step that reads what ``new`` gives instead of one of ``old``."""
    step = copy.deepcopy(step)
    for reader in (step, *step.get("groups", ())):
        for field in ("from", "with"):
            if reader.get(field) in old:
                reader[field] = new
    return step


def _standing(scenario: Json) -> Json:
    """Without the steps whose input is gone, and without the records that nothing reads."""
    have: set[str] = set()
    steps = []
    for step in scenario["steps"]:
        readers = (step, *step.get("groups", ()))
        if have.issuperset(reader[f] for reader in readers for f in ("from", "with") if f in reader):
            steps.append(step)
            have |= _results(step)
    topics = {topic for step in steps for topic in step.get("topics", ())}
    topics |= {step[field] for step in steps for field in ("topic", "pattern") if field in step}
    read = [entry for entry in scenario["drive"] if entry.get("pipe") in topics or "pipe" not in entry]
    return {**scenario, "steps": steps, "drive": read}


def _less_of_each_step(scenario: Json) -> Iterator[Json]:
    for name in scenario["config"]:
        yield {**scenario, "config": {n: v for n, v in scenario["config"].items() if n != name}}
    for place, step in enumerate(scenario["steps"]):
        for less in _less(step, _NEEDED):
            steps = [*scenario["steps"]]
            steps[place] = less
            yield _standing({**scenario, "steps": steps})


def _less(value: Json, needed: frozenset[str] = frozenset()) -> Iterator[Json]:
    """A field, or an element, left out somewhere in it."""
    if isinstance(value, dict):
        for name, of in value.items():
            if name not in needed:
                yield {n: v for n, v in value.items() if n != name}
            for less in _less(of):
                yield {**value, name: less}
    elif isinstance(value, list) and len(value) > 1:
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]


def _simpler_records(scenario: Json) -> Iterator[Json]:
    for place, entry in enumerate(scenario["drive"]):
        for simpler in _simpler(entry):
            drive = [*scenario["drive"]]
            drive[place] = simpler
            yield {**scenario, "drive": drive}


def _simpler(entry: Json) -> Iterator[Json]:
    if "headers" in entry:
        yield {name: value for name, value in entry.items() if name != "headers"}
    value = entry.get("value")
    if isinstance(value, str) and len(value) > 1:
        yield {**entry, "value": value[:-1]}
        yield {**entry, "value": value[1:]}

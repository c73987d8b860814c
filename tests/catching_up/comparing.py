"""Whether the results of a run are the expected ones; if not, what differs, for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.catching_up.reference import Expected
from tests.live.support import Read

_SHOWN = 5


def compare(expected: Expected, found: Sequence[Read], *, again: bool = False) -> None:
    """Raise ``AssertionError`` if results differ. ``found`` is what the output has, partition by partition. With
    ``again`` a result that is told each time in the same way may come more than once."""
    wrong = (
        _last_differ(expected, found)
        if expected.emission == "update"
        else _each_differs(expected, found, again=again)
    )
    if wrong:
        keys = {rec.key for rec in expected.results}
        shown = "\n  ".join(wrong[:_SHOWN])
        raise AssertionError(f"{len(wrong)} differences in the results of {len(keys)} keys:\n  {shown}")


def _last_differ(expected: Expected, found: Sequence[Read]) -> list[str]:
    """Where the last result of a key is not the expected one."""
    last: dict[str, tuple[str, int]] = {}
    for read in found:
        if read.value is None:
            last.pop(read.key, None)  # a session that has been merged with another
        else:
            last[read.key] = read.value, read.timestamp if expected.timed else 0
    wanted = {rec.key: (rec.value, rec.time) for rec in expected.results}
    unsure = {rec.key for rec in expected.maybe}
    return [
        f"{key}: {_difference(wanted.get(key), last.get(key))}"
        for key in sorted({*wanted, *last} - unsure)
        if wanted.get(key) != last.get(key)
    ]


def _each_differs(expected: Expected, found: Sequence[Read], *, again: bool) -> list[str]:
    """Where what was told of a key is not what is expected, each as often."""
    wanted: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    told: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for rec in expected.results:
        wanted[rec.key][rec.value, rec.time] += 1
    maybe = Counter((rec.key, rec.value, rec.time) for rec in expected.maybe)
    unsure_windows = {rec.key for rec in expected.maybe if "@" in rec.key}
    for read in found:
        result = read.value, read.timestamp
        if again and result in told[read.key]:
            continue
        told[read.key][result] += 1
    wrong = []
    for key in sorted({*wanted, *told} - unsure_windows):
        missing, more = wanted[key] - told[key], told[key] - wanted[key]
        more = Counter(
            {result: n for result, count in more.items() if (n := count - maybe[key, *result]) > 0}
        )
        if len(missing) == len(more) == 1:
            (one,), (other,) = missing, more
            wrong.append(f"{key}: {_difference(one, other)}")
            continue
        wrong += [f"{key}: never came: {_shown(result)}" for result in missing.elements()]
        wrong += [f"{key}: must not come{_twice(wanted[key], r)}: {_shown(r)}" for r in more.elements()]
    return wrong


def _twice(wanted: Counter[tuple[str, int]], result: tuple[str, int]) -> str:
    return " again" if result in wanted else ""


def _difference(wanted: tuple[str, int] | None, found: tuple[str, int] | None) -> str:
    if wanted is None or found is None:
        return (
            f"never came: {_shown(wanted)}"
            if wanted is not None
            else f"must not come: {_shown(found or ('', 0))}"
        )
    ids, others = set(wanted[0].split()), set(found[0].split())
    parts = []
    if ids - others:
        parts.append(f"lacks {_few(ids - others)}")
    if others - ids:
        parts.append(f"has {_few(others - ids)}, which does not belong to it")
    if wanted[1] != found[1]:
        parts.append(f"has the time {found[1]} instead of {wanted[1]}")
    return f"of {len(ids)} records it {' and '.join(parts)}"


def _shown(result: tuple[str, int]) -> str:
    return f"{_few(result[0].split())} @{result[1]}"


def _few(ids: Iterable[str]) -> str:
    listed = sorted(ids)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more

"""The units of metrics, by their names: those of Kafka Streams."""

from __future__ import annotations

import re
from typing import Final

from pystreams.metrics.catalogue import STATE

#: The units that parts of a name stand for; the first part that is found counts.
_PARTS: Final = (
    (re.compile("-rate$"), "per second"),
    (re.compile("ratio"), "share"),
    (re.compile("latency|-time-(avg|max)$|-pause-|-ms$"), "ms"),
    (re.compile("bytes?\\b|-files-size$|-buffer-size|^batch-size"), "bytes"),
    (re.compile("mem-tables?$|-usage$|-capacity$|-readers-mem$"), "bytes"),
)
#: Names with such a part that count things.
_NUMBERS: Final = re.compile("^(num|mem-table)-")


def unit_of(group: str, name: str) -> str:
    """``ms``, ``ns``, ``bytes``, ``per second`` or ``share`` (of 1); empty for a number of things."""
    if _NUMBERS.match(name):
        return ""
    unit = next((unit for part, unit in _PARTS if part.search(name)), "")
    # Operations of stores are shorter than a millisecond.
    return "ns" if unit == "ms" and group == STATE else unit

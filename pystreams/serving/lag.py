"""The lag of an application in all its processes, which ``/lag`` shows, for example to an autoscaler.

The numbers are those of ``pystreams lag``: the records in inputs and repartition topics after the committed offsets.
Each process answers for all processes.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from pystreams.clock import Clock
from pystreams.serving.group_status import GroupStatus

#: A request for the lag waits at most this long for the log, because KEDA gives up after three seconds.
WAIT_S: Final = 2.0

#: While the log does not answer, its last answer is valid for this time.
KEPT_MS: Final = 30_000


class Lag(msgspec.Struct, frozen=True, tag=True):
    """The number of records that were not committed at ``at_ms``: ``lag`` in total, ``topics`` by topic. None: it is
    not known, and ``why`` is the reason."""

    lag: int | None
    topics: dict[str, int] = {}
    at_ms: int = 0
    why: str = ""


def lag_now(group: GroupStatus, clock: Clock, wait_s: float = WAIT_S) -> Lag:
    """The lag; waits for the log for up to ``wait_s``. It may be called as often as desired, because the log is asked
    at most every three seconds."""
    known = group.fresh(wait_s)
    if known.status is None:
        return Lag(None, why=known.trouble or "the log has not answered yet")
    age_ms = clock.now_ms() - known.at_ms
    if age_ms > KEPT_MS:
        return Lag(None, why=known.trouble or f"the log has not answered for {age_ms // 1000} s")
    topics: Counter[str] = Counter()
    for one in known.status.inputs:
        topics[one.partition.topic] += one.lag
    return Lag(known.status.lag, dict(topics), known.at_ms)

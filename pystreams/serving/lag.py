"""How far an application is behind, in all its processes, as ``/lag`` shows it to those who choose how many there are.

The numbers are those of ``pystreams lag``: what is in the inputs and repartition topics behind the committed offsets.
Whichever process is asked, it answers for all.
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
    """``lag`` records are not committed yet, of which ``topics`` has those of each topic, at the time ``at_ms``. None:
    that is not known, and ``why`` says why."""

    lag: int | None
    topics: dict[str, int] = {}
    at_ms: int = 0
    why: str = ""


def lag_now(group: GroupStatus, clock: Clock, wait_s: float = WAIT_S) -> Lag:
    """The lag, after a wait of ``wait_s`` for the log at most. It may be asked for as often as anybody likes: the log
    is asked every three seconds at most."""
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

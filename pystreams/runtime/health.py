"""Whether a client works, and whether others may rely on it: for programs that monitor the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pystreams.runtime.client_state import ClientState
from pystreams.runtime.threads.progress import ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState

_ENDED: Final = ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD

#: Why a client in these states is not ready.
_NOT_AT_WORK: Final = {
    ClientState.CREATED: "the client starts",
    ClientState.PENDING_SHUTDOWN: "the client is closing",
    ClientState.NOT_RUNNING: "the client is not running",
    ClientState.PENDING_ERROR: "an error is ending the client",
    ClientState.ERROR: "an error has ended the client",
}
_STOPPING: Final = _NOT_AT_WORK.keys() - {ClientState.CREATED}


@dataclass(frozen=True, slots=True)
class Health:
    """``live``: the process can do its work, now or later; if not, only a new process helps. ``ready``: all tasks that
    the group has assigned to it are restored and run, and their lag is within the limit. ``reasons`` say why it is not
    live or not ready. ``stopping``: it is ending, or has ended."""

    live: bool
    ready: bool
    reasons: tuple[str, ...] = ()
    stopping: bool = False


def health_of(
    state: ClientState,
    threads: Sequence[ThreadProgress],
    round_ms: Mapping[str, float],
    *,
    stuck_after_ms: float,
    lag_max: int | None = None,
    has_subtopologies: bool = True,
) -> Health:
    """The health of a client in ``state`` with these threads. ``round_ms`` has for each thread the time that it has
    been in its present round. A thread whose round takes longer than ``stuck_after_ms`` is stuck, also while the client
    is closing and waits for it. ``lag_max`` limits the lag of all inputs together (None: no limit). A client without
    sub-topologies has only global stores, and no threads."""
    stuck = [
        f"{name} has been at the same work for {ms / 1000:.0f} s"
        for name, ms in round_ms.items()
        if ms > stuck_after_ms
    ]
    if state in _NOT_AT_WORK:
        live = not stuck and state is not ClientState.ERROR
        return Health(live, False, (_NOT_AT_WORK[state], *stuck), stopping=state in _STOPPING)
    missing = [*stuck, *_not_ready(threads)]
    if has_subtopologies and all(thread.state in _ENDED for thread in threads):
        missing.append("no stream thread works")
    if state is ClientState.REBALANCING and not missing:
        missing.append("the client is rebalancing")
    if not missing and lag_max is not None:
        lags = [task.lag for thread in threads for task in thread.tasks]
        missing += too_much_lag(
            None if None in lags else sum(lag for lag in lags if lag is not None), lag_max
        )
    return Health(not stuck, not missing, tuple(missing))


def _not_ready(threads: Sequence[ThreadProgress]) -> list[str]:
    reasons = []
    for thread in threads:
        restoring = sorted({str(restore.task_id) for restore in thread.restoring})
        if thread.state is not ThreadState.RUNNING and thread.state not in _ENDED:
            reasons.append(f"{thread.name} is in state {thread.state.name}")
        if restoring:
            reasons.append(f"{thread.name} restores {', '.join(restoring)}")
    return reasons


def too_much_lag(lag: int | None, lag_max: int) -> list[str]:
    """The reason why an application with this lag (None: not known) is not ready; empty if the lag is within limits."""
    if lag is None:
        return ["the lag is not known yet"]
    return [f"{lag} records wait, more than {lag_max}"] if lag > lag_max else []

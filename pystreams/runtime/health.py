"""Whether a client works, and whether others may rely on it: for those that watch over the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pystreams.runtime.client_state import ClientState
from pystreams.runtime.threads.progress import ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState

_ENDED = ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD


@dataclass(frozen=True, slots=True)
class Health:
    """``live``: the process is good for something, and a restart would not help. ``ready``: all tasks that the group
    has given it are restored and run, and they lag no more than they may. ``reasons`` say why not."""

    live: bool
    ready: bool
    reasons: tuple[str, ...] = ()


def health_of(
    state: ClientState,
    threads: Sequence[ThreadProgress],
    round_ms: Mapping[str, float],
    *,
    stuck_after_ms: float,
    lag_max: int | None = None,
) -> Health:
    """The health of a client in a state with these threads. ``round_ms`` says for how long each thread has been in its
    present round; one that takes longer than ``stuck_after_ms`` is stuck. ``lag_max`` limits the records that may wait
    in all inputs together (None: any number)."""
    if state is ClientState.CREATED:
        return Health(live=True, ready=False, reasons=("the client starts",))
    if state not in (ClientState.RUNNING, ClientState.REBALANCING):
        words = state.value.replace("_", " ")
        return Health(state is not ClientState.ERROR, ready=False, reasons=(f"the client is {words}",))
    stuck = [
        f"{name} has been at the same work for {ms / 1000:.0f} s"
        for name, ms in round_ms.items()
        if ms > stuck_after_ms
    ]
    missing = [*stuck, *_not_ready(threads)]
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
    """Why a lag (None: not known) keeps an application from being ready; empty if it does not."""
    if lag is None:
        return ["the lag is not known yet"]
    return [f"{lag} records wait, more than {lag_max}"] if lag > lag_max else []

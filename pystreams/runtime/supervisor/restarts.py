"""Decides about the next step after the death of a worker: another start after a back-off, or the end of the run.

A back-off doubles with each failure in a row. Some failures end the run instead, because another start would only
repeat them: errors that the user must correct, any error before the application has run at all, and an error that has
happened a few times in the same way.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import msgspec

from pystreams.runtime.supervisor.worker import Failure, Worker


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The settings that decide when a worker is started again, and when the run ends instead.

    After the n-th failure in a row, the next start waits for ``backoff_ms * 2**(n-1)``, at most ``backoff_ms_max``. A
    random part of up to ``jitter`` of that is added, so that workers which died together do not start together. After
    the first failure it waits only ``first_ms`` to twice ``first_ms``, because the failure may not come back, and the
    tasks of a static member wait for the start. A failure of a worker that has worked for ``ran_well_ms`` counts as a
    first one.
    """

    first_ms: float = 200
    backoff_ms: float = 1_000
    backoff_ms_max: float = 60_000
    jitter: float = 0.25
    ran_well_ms: float = 60_000
    #: The run ends when the same failure has happened this many times, or a worker has died this many times in a row
    #: before its first report.
    same_failure_max: int = 3
    stillborn_max: int = 5

    def delay_ms(self, failures: int, choose: random.Random) -> float:
        """The time to wait after this number of failures in a row."""
        if failures == 1:
            return self.first_ms * (1 + choose.random())
        # The exponent is bounded, too, because a float would overflow after a thousand failures.
        doubled = min(self.backoff_ms_max, self.backoff_ms * 2.0 ** min(failures - 1, 32))
        return doubled * (1 + self.jitter * choose.random())


class Causes:
    """Counts the causes of death of all workers together."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._seen: Counter[tuple[str, str]] = Counter()

    def final(
        self, worker: Worker, failure: Failure, exit_code: int, *, ran_well: bool, has_run: bool
    ) -> Failure | None:
        """The failure, if the run ends because of it. ``has_run``: the application has run in at least one worker."""
        reported = worker.failure is not None
        if reported and (failure.hopeless or not has_run):
            return failure
        if worker.stillborn >= self._policy.stillborn_max:
            return _extended(
                failure,
                f"this was the {_nth(worker.stillborn)} start in a row that ended before its first report",
            )
        if ran_well:
            self._seen.clear()
        if exit_code > 0 and failure.action != "retry":
            cause = (failure.what, failure.where) if reported else (f"exit code {exit_code}", failure.log)
            self._seen[cause] += 1
            if self._seen[cause] >= self._policy.same_failure_max:
                return _extended(
                    failure, f"it happened {self._seen[cause]} times: every worker fails with it"
                )
        return None


def _extended(failure: Failure, why: str) -> Failure:
    return msgspec.structs.replace(failure, why=f"{failure.why}; {why}" if failure.why else why)


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")

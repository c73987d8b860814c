"""The error of a client that does not close says in a sentence what each of its threads is at."""

from __future__ import annotations

import pytest

from pystreams.runtime.close_timeout import close_timeout
from pystreams.runtime.threads.activity import COMMIT, GROUP, NOTHING, POLL, PROCESS, Activity
from pystreams.runtime.threads.progress import ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState


@pytest.mark.parametrize(
    ("part", "task", "sentence"),
    [
        (GROUP, None, "shop-1 asks the group or opens tasks for 3.0 s"),
        (GROUP, "0_3", "shop-1 opens 0_3 for 3.0 s"),
        (POLL, None, "shop-1 waits for the log for 3.0 s"),
        (PROCESS, "0_3", "shop-1 processes 0_3 for 3.0 s"),
        (COMMIT, None, "shop-1 commits for 3.0 s"),
        (COMMIT, "0_3", "shop-1 commits 0_3 for 3.0 s"),
        (NOTHING, None, "shop-1 ends"),
    ],
)
def test_a_thread_and_its_task(part: str, task: str | None, sentence: str) -> None:
    thread = ThreadProgress("shop-1", ThreadState.PENDING_SHUTDOWN)
    error = close_timeout(2_000, [thread], {"shop-1": Activity(part, 3_000.0, task)})
    assert error.why == f"close_timeout_ms (2 s) is over; {sentence}"

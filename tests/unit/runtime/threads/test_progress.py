"""The progress of a client counts what all its threads have processed, also those that have ended."""

from __future__ import annotations

from pystreams.runtime.threads.progress import Progress, ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState


def test_what_ended_threads_have_processed_still_counts() -> None:
    ended = ThreadProgress("1", ThreadState.DEAD, 10, internal_records=4)
    running = (
        ThreadProgress("2", ThreadState.RUNNING, 5, internal_records=1),
        ThreadProgress("3", ThreadState.RUNNING, 7),
    )
    progress = Progress(0, ()).going_on_with((ended,)).going_on_with(running)
    assert progress.threads == running
    assert (progress.records, progress.internal_records, progress.source_records) == (22, 5, 17)

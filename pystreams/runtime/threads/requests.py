"""Requests of other threads to a stream thread, which reads them between two steps of its work."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from pystreams.runtime.threads.thread_calls import CallQueue

Subject = TypeVar("Subject")


class Requests(Generic[Subject]):
    """Any thread may set these; the stream thread carries them out."""

    def __init__(self, thread: str, cache_bytes: int) -> None:
        #: End after the record at work.
        self.stop = threading.Event()
        #: Commit in this round or the next.
        self.commit = threading.Event()
        #: Commit soon, because a reader waits for it. The commit may come some rounds later, because commits take time.
        self.awaited_commit = threading.Event()
        #: Ask the group soon whether it rebalances.
        self.look = threading.Event()
        #: The thread's share of the cache budget, from the next commit on.
        self.cache_bytes = cache_bytes
        #: Functions to call.
        self.calls: CallQueue[Subject] = CallQueue(thread)

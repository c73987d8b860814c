"""On SIGUSR1 a running application logs where each of its threads is: a look at what hangs, from outside.

As jstack for a JVM. The signal is handled by Python, so nothing comes while a library holds the interpreter's lock.
"""

from __future__ import annotations

import _thread
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.progress import ThreadProgress

log = logging.getLogger(__name__)


@contextmanager
def on_stacks_request(answer: Callable[[], None]) -> Iterator[None]:
    """Within the block SIGUSR1 has ``answer`` called, in a thread of its own. Only the main thread can handle signals:
    in others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not in the main thread: it may hold a lock that logging needs.
    before = signal.signal(
        signal.SIGUSR1, lambda _number, _frame: _thread.start_new_thread(answer, ()) and None
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def log_stacks(streams: Streams | None) -> None:
    """Log the stacks of all threads of this process, those of stream threads with their state and tasks, as they were
    after the last round."""
    stream_threads = () if streams is None else streams.progress().threads
    known = {thread.name: _described(thread) for thread in stream_threads}
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    asking = threading.get_ident()
    for ident, frame in sys._current_frames().items():
        if ident != asking:
            name = names.get(ident, "of a library")
            stack = "".join(traceback.format_stack(frame)).rstrip()
            log.warning("thread %s%s:\n%s", name, known.get(name, ""), stack)


def _described(thread: ThreadProgress) -> str:
    tasks = ", ".join(f"{task.task_id} ({task.status.value})" for task in thread.tasks)
    return f", {thread.state.value}, tasks: {tasks or 'none'}"

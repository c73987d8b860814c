"""What a stream thread tells whoever started it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pystreams.runtime.transitions import ThreadState

if TYPE_CHECKING:
    from pystreams.runtime.stream_thread import StreamThread


class ThreadOwner(Protocol):
    """The client, as its threads see it. Called from the threads."""

    def thread_changed(self, thread: StreamThread, old: ThreadState, new: ThreadState) -> None: ...

    def thread_failed(self, thread: StreamThread, error: BaseException) -> bool:
        """The thread is about to end because of ``error``; True if it is to tell the group to stop altogether."""
        ...

    def thread_ended(self, thread: StreamThread) -> None:
        """Everything that the thread held is released."""
        ...

    def application_shutdown(self) -> None:
        """A member of the group asked the whole application to stop."""
        ...

    def housekeeping(self) -> None:
        """Called now and then by every thread."""
        ...

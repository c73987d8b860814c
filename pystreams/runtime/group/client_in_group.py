"""The state that the threads of a client share as members of a group. One thread sends it for all of them, and one
receives for all of them where tasks are: so Kafka has less to store for the group."""

from __future__ import annotations

import threading

from pystreams.runtime.group.membership_data import Whereabouts

#: Lower than every generation of a group.
_NONE = -1


class ClientInGroup:
    """A client as a part of its group. Its threads share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._speaker = ""
        #: The member id of each thread.
        self._member_ids: dict[str, str] = {}
        #: The generation of the assignment that ``whereabouts`` came with.
        self._generation = _NONE
        #: Where all tasks are, as one of the threads has received it. It stays when that thread has ended.
        self.whereabouts = Whereabouts()

    def speaks(self, thread: str) -> bool:
        """Whether this thread sends the common state of all threads: the first thread that calls this, until it
        ends."""
        with self._mutex:
            self._speaker = self._speaker or thread
            return self._speaker == thread

    def joined(self, thread: str, member_id: str) -> None:
        """The group knows this thread as a member."""
        with self._mutex:
            self._member_ids[thread] = member_id

    def member_ids(self) -> list[str]:
        """The member ids of all threads, as far as they have joined."""
        with self._mutex:
            return list(self._member_ids.values())

    def leave(self, thread: str) -> None:
        """The thread has ended. If it was the one that sends for all, another thread takes its place."""
        with self._mutex:
            self._member_ids.pop(thread, None)
            if self._speaker == thread:
                self._speaker = ""

    def heard(self, generation: int, whereabouts: Whereabouts) -> None:
        """A thread has received where all tasks are. If another thread has already noted a later generation, this has
        no effect."""
        with self._mutex:
            if generation >= self._generation:
                self._generation, self.whereabouts = generation, whereabouts

    def forget_generation(self) -> None:
        """A thread has lost its membership. The group may have been deleted, and count its generations from 1 again."""
        with self._mutex:
            self._generation = _NONE

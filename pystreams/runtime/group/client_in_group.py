"""What the threads of a client have in common towards the group. One of them sends what all of them know, and all know
what one of them is told: that keeps what Kafka has to store of a group small."""

from __future__ import annotations

import threading

from pystreams.runtime.group.membership_data import Whereabouts

#: Less than every generation of a group.
_NONE = -1


class ClientInGroup:
    """A client as a part of its group. Its threads share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._speaker = ""
        #: The generation of the assignment that ``whereabouts`` came with.
        self._generation = _NONE
        #: Where all tasks are, as far as a thread was told. It stays when that thread has ended.
        self.whereabouts = Whereabouts()

    def speaks(self, thread: str) -> bool:
        """Whether this thread sends what all threads know: the first one that asks does, until it ends."""
        with self._mutex:
            self._speaker = self._speaker or thread
            return self._speaker == thread

    def leave(self, thread: str) -> None:
        """The thread has ended. If it was the one that speaks, another one will."""
        with self._mutex:
            if self._speaker == thread:
                self._speaker = ""

    def heard(self, generation: int, whereabouts: Whereabouts) -> None:
        """A thread was told where all tasks are. It may say so late, when another one has been told of a later
        generation: then it has no effect."""
        with self._mutex:
            if generation >= self._generation:
                self._generation, self.whereabouts = generation, whereabouts

    def forget_generation(self) -> None:
        """A thread has lost its membership. The group may have been deleted, and count its generations from 1 again."""
        with self._mutex:
            self._generation = _NONE

"""Members of a group that do as they are told, and what their test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable

from pystreams.broker.port import Assigned, Lost, Member
from tests.live.support import TIMEOUT_S, eventually

#: A member that is not heard of for so long is replaced: quick to notice who is gone.
SESSION_TIMEOUT_MS = 3_000
HEARTBEAT_INTERVAL_MS = 200
#: For members whose going must be noticed before their session is over: nothing that works takes so long.
LONG_SESSION_MS = 300_000

#: When, who, ``open`` or ``close``, and which partitions.
Journal = list[tuple[float, str, str, frozenset[int]]]


class Follower:
    """A member that claims what it is given at once, and writes down what happened."""

    def __init__(self, name: str, member: Member, journal: Journal) -> None:
        self.name = name
        self.member = member
        self.held: frozenset[int] = frozenset()
        self.events: list[Assigned | Lost] = []
        self._journal = journal

    def poll(self) -> None:
        for event in self.member.poll():
            self.events.append(event)
            given = event.partitions if isinstance(event, Assigned) else ()
            self._note(frozenset(partition.partition for partition in given))
            self.member.claim(given)

    def close_all(self) -> None:
        self._note(frozenset())

    def _note(self, now: frozenset[int]) -> None:
        """What is given up is closed before what is new is opened, and both before the claim."""
        if self.held - now:
            self._journal.append((time.monotonic(), self.name, "close", self.held - now))
        if now - self.held:
            self._journal.append((time.monotonic(), self.name, "open", now - self.held))
        self.held = now


def follow_until(condition: Callable[[], bool], *followers: Follower, timeout_s: float = TIMEOUT_S) -> None:
    """Have members poll, in turn, until something has come true."""

    def step() -> bool:
        for follower in followers:
            follower.poll()
        return condition()

    told = [(follower.name, follower.held) for follower in followers]
    eventually(step, f"what the members come to, who began with {told}", timeout_s)


def balanced(*followers: Follower, partitions: int = 4) -> Callable[[], bool]:
    """Whether all is held, in shares that differ by one at most."""

    def check() -> bool:
        shares = sorted(len(follower.held) for follower in followers)
        return sum(shares) == partitions and shares[-1] - shares[0] <= 1

    return check


def overlaps(journal: Journal) -> list[str]:
    """Partitions that were opened while somebody else had them open."""
    holders: dict[int, str] = {}
    found = []
    for at, name, what, partitions in sorted(journal):
        for partition in partitions:
            if what == "close":
                holders.pop(partition, None)
            elif partition in holders:
                found.append(f"{at:.3f}: {name} opens {partition}, {holders[partition]} has it")
            else:
                holders[partition] = name
    return found

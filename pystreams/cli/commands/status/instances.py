"""The answers of an application's instances about themselves, over HTTP: their log knows neither restores nor the
activities of threads."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import msgspec

from pystreams.cli.application_client import ApplicationClient
from pystreams.errors import StreamsError, summarize
from pystreams.serving.threads import ClientThreads, ThreadNow

#: The number of instances that are asked at the same time.
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Instances:
    """The clients that have answered, and why others have not, by their addresses."""

    clients: Sequence[ClientThreads] = ()
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def threads(self) -> dict[str, ThreadNow]:
        """The threads by their names."""
        return {thread.name: thread for client in self.clients for thread in client.threads}

    @property
    def restoring(self) -> bool:
        """Whether any task is being restored."""
        return any(thread.restoring for thread in self.threads.values())


class Restore(NamedTuple):
    """A task that ``thread`` restores: ``remaining`` offsets of its changelogs are left, of which ``rate`` are read in
    a second (None: not known yet)."""

    thread: str
    task: str
    stores: Sequence[str]
    remaining: int
    rate: float | None

    @property
    def eta_s(self) -> float | None:
        """How long it will take at this rate; None: not known."""
        return self.remaining / self.rate if self.rate else None


class Restores:
    """Computes the rates of restores, from the remaining offsets now and at the previous look."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], tuple[int, int]] = {}

    def seen(self, instances: Instances) -> list[Restore]:
        """The restores, by task."""
        found, now = [], {}
        for client in instances.clients:
            for thread in client.threads:
                for one in thread.restoring:
                    place = thread.name, one.task
                    now[place] = client.at_ms, one.remaining
                    rate = _rate(self._before.get(place), now[place])
                    found.append(Restore(*place, one.stores, one.remaining, rate))
        self._before = now
        return sorted(found, key=lambda restore: restore.task)


def _rate(before: tuple[int, int] | None, now: tuple[int, int]) -> float | None:
    if before is None or now[0] <= before[0]:
        return None
    return max(0.0, 1000 * (before[1] - now[1]) / (now[0] - before[0]))


def ask(urls: Iterable[str], members: Collection[str], tls: ssl.SSLContext | None) -> Instances:
    """Ask the instances at these addresses, which need no token for this. ``members`` are the names of the threads of
    the application: another one may have an address that was announced. ``tls``: as for ``ApplicationClient``."""
    where = sorted(set(urls))
    clients: list[ClientThreads] = []
    silent: dict[str, str] = {}
    if not where:
        return Instances()
    with ThreadPoolExecutor(min(_AT_ONCE, len(where))) as pool:
        for url, answer in zip(where, pool.map(partial(_ask, tls=tls), where), strict=True):
            if isinstance(answer, StreamsError):
                silent[url] = answer.why or summarize(answer)
            else:
                clients += [_of_members(client, members) for client in answer]
    return Instances(clients, silent)


def _of_members(client: ClientThreads, members: Collection[str]) -> ClientThreads:
    ours = [thread for thread in client.threads if thread.name in members]
    return msgspec.structs.replace(client, threads=ours)


def _ask(url: str, tls: ssl.SSLContext | None) -> list[ClientThreads] | StreamsError:
    try:
        return ApplicationClient(url, None, tls).threads()
    except StreamsError as error:
        return error

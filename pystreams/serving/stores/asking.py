"""Answers queries of the stores of an application: from its client in this process, or from several processes that
share the stores."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol, TypeVar

import msgspec
from cachetools import LRUCache

from pystreams.serving.query_errors import TooSlowError, UnreachableError
from pystreams.serving.stores.parts import StoreInfo, StorePart, joined, merged
from pystreams.serving.stores.questions import Question

log = logging.getLogger(__name__)

T = TypeVar("T")

#: A query ends after this time, even if an instance still works on it.
QUERY_S: Final = 10.0

#: The number of recently requested keys whose partitions are cached.
_KEYS_REMEMBERED_MAX: Final = 100_000


class Answerer(Protocol):
    """An object that has stores, or a part of them. All methods raise ``QueryError``, and ``OSError`` if a process that
    must be asked is gone."""

    async def stores(self) -> list[StoreInfo]:
        """All stores of the application, by name, with the partitions that are here."""
        ...

    async def ask(self, question: Question) -> StorePart:
        """The part of the answer that is here; it may be all of it."""
        ...

    def ask_at_once(self, question: Question) -> StorePart | None:
        """The whole answer, within microseconds; None: it would have to wait."""
        ...


class LastingAnswerer(Answerer, Protocol):
    """An ``Answerer`` some of whose answers hold until the next commit."""

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        """Whether this part, which ``ask_at_once`` has just returned, holds until a commit. Then ``ended`` is called in
        time: before the stores show what was committed. It may be called in any thread, and more than once."""
        ...


class Together:
    """Implements ``Answerer`` for several processes, by number. For a key it asks the process that had the key the last
    time, or all processes if none is known to have it; for a range it asks all of them. Standbys answer only for
    partitions that run in none of them, so that no entry is found twice."""

    def __init__(self, processes: Callable[[], Mapping[int, Answerer]]) -> None:
        self._processes = processes
        #: The partition of each key, by store and key; it never changes.
        self._partitions: LRUCache[tuple[str, str], int] = LRUCache(_KEYS_REMEMBERED_MAX)
        #: The process that last had a store's partition, by store and partition.
        self._had: dict[tuple[str, int], int] = {}

    async def stores(self) -> list[StoreInfo]:
        lists = await _gather(process.stores() for process in self._processes().values())
        if not lists:
            raise _nobody()
        return joined(lists)

    def ask_at_once(self, question: Question) -> StorePart | None:
        processes = self._processes()
        if len(processes) == 1:
            (process,) = processes.values()
        else:
            likely = self._likely(question)
            found = None if likely is None else processes.get(likely)
            if found is None:
                return None
            process, question = found, _of_tasks(question)
        part = process.ask_at_once(question)
        return None if part is None or part.missing() else part

    async def ask(self, question: Question) -> StorePart:
        processes = dict(self._processes())
        likely = self._likely(question)
        if likely in processes:
            try:
                found = await self._ask({likely: processes[likely]}, _of_tasks(question))
            except UnreachableError as error:
                # It may have been started again, and another process may have its tasks.
                log.debug("the process that had the key cannot answer: %s", error)
                found = []
            if found and not _missing(question, found[0]):
                return found[0]
            # Ask the same process again with the others, because it may have got or lost partitions meanwhile.
            processes = dict(self._processes())
        parts = await self._ask(processes, _of_tasks(question))
        if not parts:
            raise _nobody()
        # Each process has the whole of a global store.
        of_global_store = [part for part in parts if not part.partitions][:1]
        whole = merged(question, of_global_store or parts)
        return await self._with_standbys(processes, question, whole) if question.standbys else whole

    async def _with_standbys(
        self, processes: Mapping[int, Answerer], question: Question, part: StorePart
    ) -> StorePart:
        """The part, merged with what standbys have of its missing partitions. The processes are asked in turn, because
        several may have a standby of the same partition."""
        for number, process in processes.items():
            if not _needs_others(question, part):
                break
            try:
                parts = await self._ask({number: process}, _only(question, _missing(question, part)))
            except UnreachableError as error:
                log.debug("a process cannot answer for its standbys: %s", error)
            else:
                part = merged(question, [part, *parts])
        return part

    def _likely(self, question: Question) -> int | None:
        if question.key is None:
            return None
        partition = self._partitions.get((question.store, question.key))
        return None if partition is None else self._had.get((question.store, partition))

    async def _ask(self, processes: Mapping[int, Answerer], question: Question) -> list[StorePart]:
        parts = await _gather(self._one(number, process, question) for number, process in processes.items())
        for part in parts:
            if question.key is not None and part.partition is not None:
                self._partitions[question.store, question.key] = part.partition
        return parts

    async def _one(self, number: int, process: Answerer, question: Question) -> StorePart:
        part = await process.ask(question)
        if not question.standbys:
            # Only tasks are asked first, because the task of a standby may run in another process by now.
            for partition in part.read:
                self._had[question.store, partition] = number
        return part


class Instance:
    """Implements ``Answerer`` for one instance among several: ``own`` are its own stores, and ``ask_peer`` asks the
    instance at an endpoint. Only the instance that the client has asked asks others."""

    def __init__(self, own: Answerer, ask_peer: Callable[[str, Question], Awaitable[StorePart]]) -> None:
        self._own = own
        self._ask_peer = ask_peer

    async def stores(self) -> list[StoreInfo]:
        return await self._own.stores()

    def ask_at_once(self, question: Question) -> StorePart | None:
        part = self._own.ask_at_once(question)
        if part is None or question.alone or not _needs_others(question, part):
            return part
        return None

    async def ask(self, question: Question) -> StorePart:
        part = await self._own.ask(question)
        if question.alone:
            return part
        found = await self._with_peers(question, part, part.endpoints)
        # The first standby of each partition that is still missing, then the second one, and so on.
        turns = max(map(len, part.followers.values()), default=0) if question.standbys else 0
        for turn in range(turns):
            followers = {one: at[turn] for one, at in part.followers.items() if turn < len(at)}
            found = await self._with_peers(question, found, followers)
        return found

    async def _with_peers(
        self, question: Question, part: StorePart, endpoints: Mapping[int, str]
    ) -> StorePart:
        """The part, merged with the parts of the peers that have its missing partitions."""
        if not _needs_others(question, part):
            return part
        peers: defaultdict[str, set[int]] = defaultdict(set)
        for partition in part.missing().intersection(endpoints):
            peers[endpoints[partition]].add(partition)
        try:
            # A partition may have standbys in several peers, so each is asked for some partitions only.
            parts = await _gather(
                self._ask_peer(endpoint, _only(question, partitions) if question.standbys else question)
                for endpoint, partitions in sorted(peers.items())
            )
        except UnreachableError:
            if question.standbys:
                return part
            raise
        return merged(question, [part, *parts])


def _needs_others(question: Question, part: StorePart) -> bool:
    """Whether a part is not the whole answer, so that other processes must be asked."""
    return bool(_missing(question, part)) and (question.key is None or not part.entries)


def _missing(question: Question, part: StorePart) -> set[int]:
    """The partitions that the answer to a question still needs."""
    missing = part.missing()
    return missing.intersection(question.only) if question.only else missing


def _of_tasks(question: Question) -> Question:
    """The question without standbys."""
    return msgspec.structs.replace(question, standbys=False) if question.standbys else question


def _only(question: Question, partitions: Iterable[int]) -> Question:
    """The question about these partitions only."""
    return msgspec.structs.replace(question, only=tuple(sorted(partitions)))


async def _gather(asked: Iterable[Awaitable[T]]) -> list[T]:
    """The answers of the processes that answer. Raises ``UnreachableError`` if no process can be reached, and any other
    error of one of them."""
    found: list[T] = []
    refused: UnreachableError | None = None
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, UnreachableError):
            refused = answer
        elif isinstance(answer, OSError):
            log.debug("a process could not be asked: %s", answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append(answer)
    if not found and refused is not None:
        raise refused
    return found


def _nobody() -> UnreachableError:
    return UnreachableError(
        "the stores cannot be read now",
        why="no process of the application is there to answer: they start, or are started again",
        hint="ask again in a moment",
    )


async def in_time(answer: Awaitable[T]) -> T:
    """The answer. Raises ``TooSlowError`` if it takes too long."""
    try:
        async with asyncio.timeout(QUERY_S):
            return await answer
    except TimeoutError:
        raise TooSlowError(
            f"the stores have not answered within {QUERY_S:g} s",
            why="threads of the application are busy, or wait for something",
            hint="ask again later; pystreams status shows what the application does",
        ) from None

"""The stores of the client in this process: their names, their partitions here, and their content."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cached_property
from threading import get_ident
from typing import Final, NamedTuple, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread

from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.runtime.queries.answers import Answer, Freshness
from pystreams.runtime.queries.gathered_reads import GatheredReads
from pystreams.runtime.queries.placing import Placing
from pystreams.runtime.queries.position import Position
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.serving.query_errors import BadQueryError, UnreachableError, unknown_store
from pystreams.serving.stores.json_forms import JsonForm, name_of
from pystreams.serving.stores.kept_answers import KeptAnswers
from pystreams.serving.stores.page_reading import KINDS, Page, Reading, read_page, reading_of
from pystreams.serving.stores.parts import StoreInfo, StorePart, least, merged
from pystreams.serving.stores.questions import LIMIT_DEFAULT, Offsets, Question
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The time limit for reading a page, because the thread that has the task may be blocked meanwhile.
READ_MS: Final = 500

#: The longest time that a query waits for busy threads, or for a demanded position.
WAIT_MS: Final = 9_000.0

#: The largest number of queries that wait for stream threads at once; more wait for their turn.
_THREADS_MAX: Final = 64


class _StoreForms(NamedTuple):
    """The description of a store, and the JSON forms of its keys and values."""

    spec: StoreSpec
    keys: JsonForm
    values: JsonForm

    @property
    def computes_only(self) -> bool:
        return self.keys.computes_only and self.values.computes_only


class _Prepared(NamedTuple):
    """A question to an opened store."""

    reading: Reading
    store: LocalStore


class LocalStores:
    """Implements ``LastingAnswerer`` for one client. Its stream threads read the latest state, between two steps of
    their work; the caller reads the last commit."""

    def __init__(self, streams: Streams, clock: Clock | None = None) -> None:
        self._streams = streams
        self._clock = SystemClock() if clock is None else clock
        #: The forms of the stores that were requested so far, by name.
        self._forms: dict[str, _StoreForms] = {}
        self._gathered = GatheredReads()
        self._kept = KeptAnswers()
        #: The opened stores, by name, freshness, and whether standbys may answer.
        self._stores: dict[tuple[str, Freshness, bool], LocalStore] = {}

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        # Made at the first use, because it belongs to the event loop, which does not run yet when this object is made.
        return CapacityLimiter(_THREADS_MAX)

    async def stores(self) -> list[StoreInfo]:
        return await self._beside(self._infos)

    def _infos(self) -> list[StoreInfo]:
        built = self._streams.built
        infos = [self._info(spec, sub.id) for sub in built.subtopologies for spec in sub.stores]
        infos += [self._info(one.spec, None) for one in built.global_stores]
        return sorted((info for info in infos if info.kind in KINDS), key=lambda info: info.name)

    async def ask(self, question: Question) -> StorePart:
        part = self.ask_at_once(question)
        if part is not None:
            return part
        if question.freshness != "latest" or not self._is_short(question):
            return await self._beside(lambda: self._answer(self._prepared(question)))
        prepared = self._prepared(question)
        likely = await self._in_likely_partition(prepared)
        part = None if likely is None else _whole_answer(likely, prepared)
        if part is not None:
            return part
        return await self._beside(lambda: self._answer(prepared, not_likely=likely is not None))

    def ask_at_once(self, question: Question) -> StorePart | None:
        if question.freshness == "latest" or not self._is_short(question):
            return None
        try:
            # Read here, because a switch to another thread would take longer than the read.
            return self._kept.find(question) or self._read_at_once(self._prepared(question))
        except StateError as error:
            raise _unreachable(error) from error

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        return self._kept.lasts_until(question, part, ended)

    def _read_at_once(self, prepared: _Prepared) -> StorePart | None:
        part = self._committed_key(prepared)
        if part is None and prepared.store.reads_at_once():
            part = self._read(prepared, not_likely=False)
        return part

    def _committed_key(self, prepared: _Prepared) -> StorePart | None:
        """The entries of a key as of the last commit, if the key is in its likely partition or in none. None: it may be
        in another partition, or the answer would have to wait."""
        reading, store = prepared
        placing = store.placing
        likely = None if placing is None else _likely_partition(placing, reading.key)
        if placing is None or likely is None or reading.question.only:
            return None
        read = self._page_of(reading)
        # Marks are taken before the reads: so an answer may be newer than its mark, and is then read again, but it is
        # never older.
        marks = store.commit_marks([likely])
        answers = store.committed_at_once([likely], read)
        if likely not in answers:
            return None
        part = _whole_answer(answers[likely], prepared)
        if part is None:
            others = set(range(placing.partitions)).difference(answers)
            marks |= store.commit_marks(others)
            if len(marks) < placing.partitions:
                return None
            answers |= store.committed_at_once(others, read)
            if len(answers) < placing.partitions or any(one.result.entries for one in answers.values()):
                return None
            part = _absent(prepared, placing, answers.values())
        self._kept.keep(reading.question, part, store, marks)
        return part

    async def _in_likely_partition(self, prepared: _Prepared) -> Answer[Page] | None:
        """The latest state of a key, read by the stream thread that has the likely partition. None: no thread has read
        it."""
        reading, store = prepared
        likely = None if store.placing is None else _likely_partition(store.placing, reading.key)
        if likely is None:
            return None
        try:
            call = store.latest_call(likely, self._page_of(reading))
            async with asyncio.timeout(WAIT_MS / 1000):
                return None if call is None else await self._gathered.ask(*call)
        except TimeoutError:
            raise UnreachableError(
                f"store {reading.question.store} could not be read in time",
                why="a stream thread was busy all the while",
                hint="a function of the application is slow, or blocks; freshness=committed does not wait for it",
            ) from None
        except StateError as error:
            log.debug("the thread that had the partition cannot answer: %s", error)
            return None

    async def _beside(self, work: Callable[[], T]) -> T:
        """The result of a function that may wait, which runs in another thread, so that the event loop can serve other
        requests."""
        # If the query is cancelled, the thread continues to wait for the stream thread, but the query ends at once.
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    def _is_short(self, question: Question) -> bool:
        """Whether the question takes microseconds if it need not wait, because its serdes only compute."""
        if question.key is None or question.limit > LIMIT_DEFAULT:
            return False
        forms = self._forms.get(question.store)
        return forms is not None and forms.computes_only

    def _prepared(self, question: Question) -> _Prepared:
        spec, keys, values = self._forms_of(question.store)
        reading = reading_of(question, spec.kind, keys, values)
        store = self._opened(question, _position_of(question.position))
        try:
            store.require_position()
        except StateError as error:
            raise BadQueryError(error.what, where=error.where, why=error.why, hint=error.hint) from error
        return _Prepared(reading, store)

    def _opened(self, question: Question, at_least: Position) -> LocalStore:
        """The store with the demands of a question. Stores for questions without a position are kept, because most
        questions have the same demands."""
        alike = question.store, question.freshness, question.standbys
        store = None if at_least else self._stores.get(alike)
        if store is not None:
            return store
        try:
            store = self._streams.store(
                question.store,
                freshness=question.freshness,
                standbys=question.standbys,
                at_least=at_least,
                timeout=WAIT_MS,
            )
        except StateError as error:
            raise _unreachable(error) from error
        # Before the start, the number of partitions is not known yet.
        if not at_least and store.placing is not None and store.placing.partitions:
            self._stores[alike] = store
        return store

    def _answer(self, prepared: _Prepared, *, not_likely: bool = False) -> StorePart:
        """The part of an answer. ``not_likely``: the likely partition of the key does not have it."""
        try:
            return self._read(prepared, not_likely)
        except StateError as error:
            raise _unreachable(error) from error

    def _read(self, prepared: _Prepared, not_likely: bool) -> StorePart:
        reading, store = prepared
        question, read = reading.question, self._page_of(reading)
        placing = store.placing
        if placing is None:
            (page,) = store.query(read)
            return StorePart(page.entries, page.more, single=reading.single)
        if not placing.partitions:
            raise UnreachableError(
                f"store {question.store} cannot be read yet",
                why="the application starts",
                hint="ask again in a moment",
            )
        only: Collection[int] = range(placing.partitions)
        if question.only:
            # The header of a request may name many partitions that the store does not have.
            only = [one for one in question.only if one in only]
        likely = None if question.key is None or not_likely else _likely_partition(placing, reading.key)
        if likely is not None and likely in only:
            answer = store.answers(read, [likely]).by_partition.get(likely)
            if answer is not None and (whole := _whole_answer(answer, prepared)):
                return whole
        answers = store.answers(read, only if question.only else None)
        empty = _without_entries(prepared, placing, answers.by_partition.values())
        others = set(only).difference(answers.by_partition)
        if others:
            hosts = {one: hosts for one, hosts in store.places.items() if one in others}
            empty = msgspec.structs.replace(
                empty,
                elsewhere={
                    one: answers.found.describe([one]).removeprefix(f"partition {one} ") for one in others
                },
                endpoints={
                    one: at.active.endpoint for one, at in hosts.items() if at.active and at.active.endpoint
                },
                followers={
                    one: [host.endpoint for host in at.standbys if host.endpoint] for one, at in hosts.items()
                },
            )
        return merged(question, [*map(_part, answers.by_partition.values()), empty])

    def _page_of(self, reading: Reading) -> Callable[[object], Page]:
        """The function that reads a page of an opened store, in any thread."""
        #: The remaining time of each reading thread. Only the time within its reads counts.
        left_ms: defaultdict[int, float] = defaultdict(lambda: READ_MS)

        def read(opened: object) -> Page:
            thread = get_ident()
            deadline = Deadline(self._clock, left_ms[thread])
            try:
                return read_page(opened, reading, deadline)
            finally:
                left_ms[thread] = deadline.remaining_ms()

        return read

    def _forms_of(self, name: str) -> _StoreForms:
        """The forms of a store, which are kept, because making them takes longer than a query. Raises
        ``UnknownStoreError``."""
        found = self._forms.get(name)
        if found is not None:
            return found
        built = self._streams.built
        specs = {spec.name: spec for spec in (*built.stores, *(one.spec for one in built.global_stores))}
        known = [one for one, spec in specs.items() if spec.kind in KINDS]
        if name not in known:
            raise unknown_store(name, known)
        spec, topic = specs[name], built.changelog(name)
        forms = _StoreForms(spec, JsonForm(spec.key_serde, topic), JsonForm(spec.value_serde, topic))
        return self._forms.setdefault(name, forms)

    def _info(self, spec: StoreSpec, subtopology: int | None) -> StoreInfo:
        here = {
            task.task_id.partition
            for thread in self._streams.progress().threads
            for task in thread.tasks
            if task.task_id.subtopology == subtopology and task.status is TaskStatus.RUNNING
        }
        return StoreInfo(
            spec.name,
            spec.kind,
            name_of(spec.key_serde),
            name_of(spec.value_serde),
            sum(task.subtopology == subtopology for task in self._streams.task_ids),
            sorted(here),
        )


def _position_of(offsets: Offsets) -> Position:
    return Position(
        {
            TopicPartition(topic, number): offset
            for topic, by_partition in offsets.items()
            for number, offset in by_partition.items()
        }
    )


def _part(answer: Answer[Page]) -> StorePart:
    assert answer.partition is not None, "each partition answers for itself"
    position: Offsets = {}
    for place, offset in answer.position.items():
        position.setdefault(place.topic, {})[place.partition] = offset
    lag = None if not answer.standby else -1 if answer.lag is None else answer.lag
    page = answer.result
    return StorePart(page.entries, page.more, [answer.partition], position=position, lag=lag)


def _likely_partition(placing: Placing, key: object) -> int | None:
    """The likely partition of a key. If other programs write the input, their partitioner is not known, but most use
    the default one."""
    likely = placing.likely_partition(key)
    return placing.partition_of(key, partition_for_key) if likely is None else likely


def _without_entries(prepared: _Prepared, placing: Placing, answers: Collection[Answer[Page]]) -> StorePart:
    """A part with the partition of the key, and the time before which entries have expired. It has no entries, which
    are in the parts of the partitions that have answered."""
    reading = prepared.reading
    key: int | None = None
    if reading.question.key is not None:
        with_entries = (answer.partition for answer in answers if answer.result.entries)
        key = next(with_entries, placing.likely_partition(reading.key))
    return StorePart(
        partitions=placing.partitions,
        partition=key,
        single=reading.single,
        kept_from_ms=least(
            answer.result.kept_from_ms for answer in answers if key in (None, answer.partition)
        ),
    )


def _whole_answer(answer: Answer[Page], prepared: _Prepared) -> StorePart | None:
    """The whole answer, if the likely partition of a key has entries of it, or if the application itself has chosen the
    partition. Otherwise None, because the partitioner is only a guess, which must not hide a key in another partition.
    """
    reading, placing = prepared.reading, prepared.store.placing
    if placing is None:
        return None
    if answer.result.entries:
        where = {"partitions": placing.partitions, "partition": answer.partition, "single": reading.single}
        return msgspec.structs.replace(_part(answer), **where)
    if answer.partition != placing.likely_partition(reading.key):
        return None
    return _absent(prepared, placing, [answer])


def _absent(prepared: _Prepared, placing: Placing, answers: Collection[Answer[Page]]) -> StorePart:
    """The whole answer about an absent key: these answers come from all partitions where it could be, and none has
    entries of it."""
    parts = [*map(_part, answers), _without_entries(prepared, placing, answers)]
    return merged(prepared.reading.question, parts)


def _unreachable(error: StateError) -> UnreachableError:
    return UnreachableError(error.what, where=error.where, why=error.why, hint=error.hint)

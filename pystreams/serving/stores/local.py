"""The stores of the client in this process: which there are, which partitions are here, and what they hold."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from anyio import CapacityLimiter, to_thread

from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import StateError
from pystreams.runtime.queries.global_queries import GlobalLocalStore
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.runtime.streams import Streams
from pystreams.serving.stores.errors import UnreachableError, unknown_store
from pystreams.serving.stores.json_forms import JsonForm, name_of
from pystreams.serving.stores.parts import Part, StoreInfo, merged
from pystreams.serving.stores.questions import Question
from pystreams.serving.stores.reading import KINDS, Page, Reading, read_page, reading_of
from pystreams.state.spec import StoreSpec

#: A page is read in this time: meanwhile the thread that has the task processes no records.
READ_MS: Final = 500

#: So many queries at once wait for stream threads; more wait for their turn.
_THREADS_MAX: Final = 64


class LocalStores:
    """Implements ``Answerer`` for one client. Its stream threads read, between two rounds of their work."""

    def __init__(self, streams: Streams, clock: Clock | None = None) -> None:
        self._streams = streams
        self._clock = SystemClock() if clock is None else clock
        self._forms: dict[str, tuple[JsonForm, JsonForm]] = {}

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        # It belongs to the event loop, which does not run yet while this object is made.
        return CapacityLimiter(_THREADS_MAX)

    async def stores(self) -> list[StoreInfo]:
        built = self._streams._built
        infos = [self._info(spec, sub.id) for sub in built.subtopologies for spec in sub.stores]
        infos += [self._info(one.spec, None) for one in built.global_stores]
        return sorted((info for info in infos if info.kind in KINDS), key=lambda info: info.name)

    async def ask(self, question: Question) -> Part:
        # A query that nobody waits for any more does not end the wait for the stream thread.
        return await to_thread.run_sync(self.answer, question, abandon_on_cancel=True, limiter=self._limiter)

    def answer(self, question: Question) -> Part:
        """The part of the answer that is here. Raises ``QueryError``."""
        spec = self._spec(question.store)
        reading = reading_of(question, spec.kind, *self._forms_of(spec))
        try:
            return self._read(self._streams.store(spec.name), reading)
        except StateError as error:
            raise UnreachableError(error.what, where=error.where, why=error.why, hint=error.hint) from error

    def _read(self, store: LocalStore, reading: Reading) -> Part:
        deadline = Deadline(self._clock, READ_MS)

        def read(opened: object) -> Page:
            return read_page(opened, reading, deadline)

        if isinstance(store, GlobalLocalStore):
            (page,) = store.query(read)
            return Part(page.entries, page.more, single=reading.single)
        placing = store._placing
        assert placing is not None
        if not placing.partitions:
            raise UnreachableError(
                f"store {reading.question.store} cannot be read yet",
                why="the application starts",
                hint="ask again in a moment",
            )
        answers = store._ask(read)
        found = answers.found
        others = set(range(placing.partitions)).difference(found.here)
        key = None
        if reading.question.key is not None and placing.partitioner is not None:
            key = placing.partition_of(reading.key, placing.partitioner)
        if reading.question.key is not None and key is None:
            key = next((partition for partition, page in answers.results.items() if page.entries), None)
        parts = [
            Part(page.entries, page.more, [partition], placing.partitions, key)
            for partition, page in answers.results.items()
        ]
        elsewhere = {one: found.describe([one]).removeprefix(f"partition {one} ") for one in others}
        empty = Part(partitions=placing.partitions, partition=key, elsewhere=elsewhere, single=reading.single)
        return merged(reading.question, [*parts, empty])

    def _spec(self, name: str) -> StoreSpec:
        built = self._streams._built
        specs = {spec.name: spec for spec in (*built.stores, *(one.spec for one in built.global_stores))}
        known = [one for one, spec in specs.items() if spec.kind in KINDS]
        if name not in known:
            raise unknown_store(name, known)
        return specs[name]

    def _forms_of(self, spec: StoreSpec) -> tuple[JsonForm, JsonForm]:
        """The JSON of keys and values; making it takes longer than a query."""
        forms = self._forms.get(spec.name)
        if forms is None:
            topic = self._streams._built.changelog(spec.name)
            forms = self._forms[spec.name] = (
                JsonForm(spec.key_serde, topic),
                JsonForm(spec.value_serde, topic),
            )
        return forms

    def _info(self, spec: StoreSpec, subtopology: int | None) -> StoreInfo:
        context = self._streams._context
        partitions = (
            [] if context is None else [t.partition for t in context.inputs if t.subtopology == subtopology]
        )
        here = {
            task.task_id.partition
            for thread in self._streams.progress().threads
            for task in thread.tasks
            if task.task_id.subtopology == subtopology
        }
        return StoreInfo(
            spec.name,
            spec.kind,
            name_of(spec.key_serde),
            name_of(spec.value_serde),
            len(partitions),
            sorted(here),
        )

"""Handles records that cannot be read, processed or written: calls the exception handler, and stops, skips or moves the
record.

Source: ProcessorNode.process, RecordDeserializer, RecordCollectorImpl.handleException.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.failures.drop_counts import DropCounts
from pystreams.engine.failures.lateness import PARTNERS_GONE, WINDOW_CLOSED, Late, readable_bytes
from pystreams.engine.failures.left_out import Fate, Kind, LeftOut, LeftOutRecord, Step
from pystreams.engine.failures.origins import Origins
from pystreams.engine.input.decoding import Refusal, Rows
from pystreams.errors import (
    BrokerError,
    DroppedRecordError,
    ProcessingError,
    ProductionError,
    SchemaRegistryError,
    SerializationError,
    StateError,
    StreamsError,
    TaskMigratedError,
    advice,
    reason,
    summarize,
)
from pystreams.handlers import (
    ErrorContext,
    Handler,
    RawContent,
    Response,
    dead_letter_record,
    resolve_handler,
)
from pystreams.ids import TaskId
from pystreams.record import ContextCell, Headers, RecordContext
from pystreams.serde.base import WRITTEN_AS
from pystreams.state.spec import StoreSpec
from pystreams.user_code import from_user_code

Send = Callable[[str, int | None, bytes | None, bytes | None, int, Headers], None]


#: Errors that the record does not cause: no handler is called, the task or its thread must act.
_FATAL = (ProductionError, BrokerError, TaskMigratedError, StateError, SchemaRegistryError)


@dataclass(frozen=True, slots=True)
class Handlers:
    """The three handlers, and where dead letters go."""

    deserialization: Handler
    processing: Handler
    production: Handler
    dead_letter_topic: str | None
    #: Whether dropped records also go to the dead-letter topic.
    dead_letter_dropped: bool

    @classmethod
    def of(cls, config: StreamsConfig) -> Handlers:
        return cls(
            resolve_handler(config.deserialization_exception_handler),
            resolve_handler(config.processing_exception_handler),
            resolve_handler(config.production_exception_handler),
            config.errors_dead_letter_queue_topic_name,
            config.dead_letter_dropped_records,
        )


class Failures:
    """Calls the handlers for one task. ``origins`` finds the places of functions, and the steps that made values."""

    def __init__(
        self,
        task_id: TaskId,
        cell: ContextCell,
        handlers: Handlers,
        send: Send,
        drops: DropCounts,
        clock: Clock,
        origins: Origins,
        left_out: LeftOut,
    ) -> None:
        self._task_id = task_id
        self._cell = cell
        self._handlers = handlers
        self._send = send
        self._drops = drops
        self._clock = clock
        self._origins = origins
        #: The error that stops the task, complete with its place: it passes unchanged through the steps above.
        self._verdict: StreamsError | None = None
        self._left_out = left_out
        self._counts = left_out.of_task(task_id)
        self._steps: dict[str, Step] = {}
        #: Step and position of the last record that was counted, and position of the last one that a step dropped.
        self._counted: tuple[str, str | None, int, int] | None = None
        self._dropped_at: tuple[str | None, int, int] | None = None
        #: Step and position of the last record that was too late for its partners.
        self._late_at: tuple[str, str | None, int, int] | None = None
        #: Position of the last record that was moved because it was dropped.
        self._moved: tuple[str | None, int, int] | None = None
        #: The batches at work, for the raw bytes of their records.
        self.rows: Sequence[Rows] = ()

    def drop(self, step: str, reason: str) -> None:
        """Count the current record, which a step drops, and move it to the dead-letter topic if that is configured."""
        self._drop(step, reason, None)

    def drop_late(self, step: str, key: Any, value: Any, stream_time: int, grace_ms: int) -> None:
        """As ``drop``, for a record that is too late for one of its windows at this stream time; with a grace of
        ``grace_ms`` the window would still be open. Key and value are the arguments of the step."""
        late = Late(key, value, self._cell.record[3], stream_time, grace_ms, self._clock.now_ms())
        self._drop(step, WINDOW_CLOSED, late)

    def late(self, step: str, stream_time: int, grace_ms: int) -> None:
        """Count the current record, which is too late for some records that a step would have combined it with. The
        step still processes it."""
        topic, partition, offset, timestamp, _ = self._cell.record
        place = step, topic, partition, offset
        if place == self._late_at and topic is not None:
            return
        self._late_at = place
        late = Late(None, None, timestamp, stream_time, grace_ms, self._clock.now_ms(), "them")
        self._counts.add_late(self._step(step), 1, late.late_ms, late.grace_ms, late.ahead_time)
        self._drops.late(step, 1, late.late_ms, late.grace_ms)
        kind = Kind(Fate.WITHOUT_PARTNERS, self._step(step), PARTNERS_GONE, topic, late=True)
        if self._counts.add(kind, again=True):
            self._left_out.log_first(kind, self._task_id, _position(self._cell.record), late.spelled)

    def expired(self, spec: StoreSpec, store: Any) -> None:
        """Count a write that a store has dropped, because it is older than the store's retention."""
        step = self._origins.keeper(spec.name)
        if spec.kind == "join_window" and step:
            stream_time = store.stream_time
            grace_ms = stream_time - self._cell.record[3] - spec.window_size_ms + 1
            self.drop_late(step, None, None, stream_time, grace_ms)
        elif spec.kind == "versioned" and step:
            self.drop(step, "it is older than the history of the table")
        else:
            # Only the metric counts it: it comes from the flush of a cache, which has forwarded the result already, or
            # from a processor's own store.
            self._drops.dropped.add()

    def _drop(self, step: str, reason: str, late: Late | None) -> None:
        moves = self._is_moved(late)
        self._count(step, reason, Fate.DEAD_LETTER if moves else Fate.DROPPED, late=late)
        if moves:
            self._move_dropped(step, reason, late)

    def move_dropped(self, step: str, reason: str) -> None:
        """Write the input record that a step drops to the dead-letter topic, if ``dead_letter_dropped_records`` is
        set."""
        if self._is_moved(None):
            self._move_dropped(step, reason, None)

    def _is_moved(self, late: Late | None) -> bool:
        """Whether a dropped record goes to the dead-letter topic: if that is configured, and the record is known."""
        known = self._cell.record[0] is not None or (late is not None and late.value is not None)
        return known and self._handlers.dead_letter_dropped

    def _move_dropped(self, step: str, reason: str, late: Late | None) -> None:
        """Move a dropped record, but only once, even if several steps, or one step for several windows, drop it or
        records that were made from it."""
        topic, partition, offset, _, _ = self._cell.record
        dropped = topic, partition, offset
        if topic is not None and dropped == self._moved:
            return
        self._moved = dropped
        what = f"{self._step(step).spelled} dropped the record: {reason}"
        error = late.error(what, step) if late else DroppedRecordError(what, facts={"step": step})
        context = self._context(step, error, None, None)
        if late is not None and context.content is RawContent.NONE:
            context = replace(
                context,
                raw_key=readable_bytes(late.key),
                raw_value=readable_bytes(late.value),
                content=RawContent.TEXT,
            )
        self._dead_letter(context)

    def count_drop(self, step: str, reason: str) -> None:
        """Count that a step has dropped the current record."""
        self._count(step, reason, Fate.DROPPED)

    def _count(
        self, step: str, reason: str, fate: Fate, *, error: str | None = None, late: Late | None = None
    ) -> None:
        """Count that the current record was left out; ``error`` None: a step has dropped it. In the counts for users, a
        record that a step drops for several windows counts once."""
        self._drops.drop(step)
        topic, partition, offset, _, _ = self._cell.record
        place = step, topic, partition, offset
        counted = place == self._counted and topic is not None
        if late is not None:
            records = 0 if counted else 1
            self._counts.add_late(self._step(step), records, late.late_ms, late.grace_ms, late.ahead_time)
            self._drops.late(step, records, late.late_ms, late.grace_ms)
        if counted:
            return
        self._counted = place
        kind = Kind(fate, self._step(step), reason, topic, late is not None)
        again = False
        if error is None:
            again = place[1:] == self._dropped_at and topic is not None
            self._dropped_at = place[1:]
        else:
            position = _position(self._cell.record)
            self._left_out.remember(LeftOutRecord(self._clock.now_ms(), kind, self._task_id, position, error))
        if self._counts.add(kind, again=again):
            details = error or "" if late is None else late.spelled
            self._left_out.log_first(kind, self._task_id, _position(self._cell.record), details)

    def _step(self, name: str) -> Step:
        step = self._steps.get(name)
        if step is None:
            step = self._steps[name] = Step(name, self._origins.store(name), self._origins.sources(name))
        return step

    def _count_failed(self, context: ErrorContext, what: str, response: Response) -> None:
        """Count a record for which a handler has chosen to continue."""
        error = context.exception
        fate = Fate.DEAD_LETTER if response is Response.DEAD_LETTER else Fate.SKIPPED
        text = "; ".join(filter(None, (_first_line(error), reason(error))))
        self._count(context.step, f"{what} failed with {type(error).__name__}", fate, error=text)

    def drop_as_usual(self, step: str) -> None:
        """Only count that a step has dropped the current record."""
        self._drops.drop(step)

    def failed(self, step: str, error: Exception, key: Any, value: Any) -> None:
        """Handle an exception of a step. Returns if the rest of the record's branch is skipped, otherwise raises."""
        if error is self._verdict:
            raise error
        self._judge(self._context(step, error, key, value))

    def failed_waiting(
        self, step: str, error: Exception, key: Any, value: Any, raw: tuple[bytes | None, bytes | None]
    ) -> None:
        """As ``failed``, for a record that has waited in the step. The step has the bytes of its key and value."""
        if error is self._verdict:
            raise error
        context = self._context(step, error, key, value)
        content = RawContent.STORE
        self._judge(replace(context, raw_key=raw[0], raw_value=raw[1], waited=True, content=content))

    def _judge(self, context: ErrorContext) -> None:
        error = context.exception
        if isinstance(error, _FATAL):
            self._stop(error, context)
        response = self._ask(self._handlers.processing, context, "processing")
        if response is Response.FAIL:
            self._fail(context)
        self._count_failed(context, "processing", response)

    def each(
        self, step: str, values: Iterable[Any], key: Any, value: Any, context: RecordContext
    ) -> Iterator[Any]:
        """The elements that a user's function returned; an error during iteration ends them, if the handler chooses to
        continue."""
        try:
            yield from _guarded(values)
        except _IterationError as failure:
            self._cell.record = context
            cause = failure.__cause__
            assert isinstance(cause, Exception)
            self.failed(step, cause, key, value)

    def unwritable(
        self, step: str, topic: str, error: Exception, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        """Handle a record that a sink could not serialize, or that the producer refused."""
        context = self._context(step, error, key, value)
        if isinstance(error, _FATAL) and (not isinstance(error, ProductionError) or error.action == "redo"):
            self._stop(error, context)
        response = self._ask(self._handlers.production, context, "production")
        if response is Response.FAIL:
            way_out = "let production_exception_handler skip such records (continue, dead_letter)"
            if isinstance(error, ProductionError):
                self._stop(error, context, way_out)
            self._verdict = ProductionError(
                f"a record for topic {topic} cannot be serialized: {summarize(error)}",
                where=f"{context.where}, timestamp {timestamp}",
                why="; ".join(filter(None, (reason(error), self._origins.spelled(step, key, value)))),
                hint=f"{advice(error, 'give the step serdes for its keys and values (key=, value=)')}, or {way_out}",
            )
            raise self._verdict from error
        self._count_failed(context, "production", response)

    def refuse(self, step: str, rows: Rows, position: int, refusal: Refusal) -> None:
        """Handle a bad record that is next in its queue."""
        offset, timestamp = rows.offsets[position], rows.raw.timestamps[position]
        self.rows = (rows,)
        self._cell.record = (rows.topic, rows.partition, offset, timestamp, rows.raw_headers(position))
        error = refusal.error
        if error is None:
            self.drop(step, "negative timestamp")
            return
        context = self._context(step, error, None, None)
        if refusal.kind == "invalid_time":
            assert isinstance(error, StreamsError)
            self._stop(error, context)
        if refusal.kind == "extractor_failed":
            response = self._ask(self._handlers.processing, context, "processing")
            if response is Response.FAIL:
                self._without_time(context, refusal.extractor)
            self._count_failed(context, "the timestamp extractor", response)
            return
        response = self._ask(self._handlers.deserialization, context, "deserialization")
        if response is Response.FAIL:
            self._undecodable(context)
        self._count_failed(context, "deserialization", response)

    def _ask(self, handler: Handler, context: ErrorContext, what: str) -> Response:
        try:
            response = handler(context)
        except Exception as error:
            self._verdict = ProcessingError(
                f"the {what} exception handler itself raised {summarize(error)}",
                where=context.where,
                why=f"it was called for {summarize(context.exception)}",
            )
            raise self._verdict from error
        if response is Response.DEAD_LETTER:
            self._dead_letter(context)
        return response

    def _dead_letter(self, context: ErrorContext) -> None:
        topic = self._handlers.dead_letter_topic
        if topic is None:
            self._verdict = ProcessingError(
                "a handler answered DEAD_LETTER, but there is no dead-letter topic",
                where=context.where,
                hint="name one with errors_dead_letter_queue_topic_name",
            )
            raise self._verdict from context.exception
        key, value, timestamp, headers = dead_letter_record(context)
        try:
            self._send(
                topic, None, key, value, timestamp if timestamp >= 0 else self._clock.now_ms(), headers
            )
        except StreamsError as error:
            error.extend(where=f"a dead letter of {context.where}")
            self._verdict = error
            raise
        self._drops.dead_letters.add()

    def _context(self, step: str, error: Exception, key: Any, value: Any) -> ErrorContext:
        topic, partition, offset, timestamp, headers = self._cell.record
        found = self._raw(topic, partition, offset)
        raw_key, raw_value, raw_headers = found or (None, None, None)
        return ErrorContext(
            topic,
            partition,
            offset,
            timestamp,
            headers if raw_headers is None else raw_headers,
            step,
            self._task_id,
            raw_key,
            raw_value,
            key,
            value,
            error,
            content=RawContent.INPUT if found else RawContent.NONE,
        )

    def _raw(
        self, topic: str | None, partition: int, offset: int
    ) -> tuple[bytes | None, bytes | None, Headers | None] | None:
        """The record's bytes, and its headers if the source has removed some of them. None: the record is not in the
        batch at work, which is usual for the record of a flushed cache entry."""
        for rows in self.rows:
            if (rows.topic, rows.partition) != (topic, partition):
                continue
            position = bisect_left(rows.offsets, offset)
            if position < rows.size and rows.offsets[position] == offset:
                headers = None if rows.headers is rows.raw.headers else rows.raw_headers(position)
                return rows.raw.keys[position], rows.raw.values[position], headers
        return None

    def _stop(self, error: StreamsError, context: ErrorContext, hint: str = "") -> NoReturn:
        """Stop the task with an error for which no handler is called, or for which the handler chose to fail."""
        error.extend(where=context.where, hint=hint)
        self._verdict = error
        raise error

    def _fail(self, context: ErrorContext) -> NoReturn:
        error = context.exception
        function = self._origins.function(context.step)
        # An error outside of the user's functions has its cause in the input of the step.
        given = (
            "" if from_user_code(error) else self._origins.spelled(context.step, context.key, context.value)
        )
        way_out = "correct the function, or let processing_exception_handler skip such records (continue, dead_letter)"
        of_bytes = self._origins.advice_on_bytes(context.step, error, context.value)
        self._verdict = ProcessingError(
            f"step {context.step} {'failed:' if isinstance(error, StreamsError) else 'raised'} {summarize(error)}",
            where=f"{context.where}, timestamp {context.timestamp}"
            + (f", in {function}" if function else ""),
            why="; ".join(filter(None, (reason(error), given))),
            hint=advice(error, "; or ".join(filter(None, (of_bytes, way_out)))),
        )
        raise self._verdict from error

    def _without_time(self, context: ErrorContext, extractor: str) -> NoReturn:
        error = context.exception
        where = f"{context.where}, timestamp {context.timestamp}, in {extractor}"
        way_out = "let processing_exception_handler skip such records (continue, dead_letter)"
        if isinstance(error, ProcessingError):
            error.extend(where=where, hint=way_out)
            raise error
        raise ProcessingError(
            f"the timestamp extractor raised {summarize(error)}",
            where=where,
            why=reason(error),
            hint=f"correct the extractor (to drop a record, let it return -1), or {way_out}",
        ) from error

    def _undecodable(self, context: ErrorContext) -> NoReturn:
        error = context.exception
        own = error.hint if isinstance(error, StreamsError) else ""
        raise SerializationError(
            f"a record of topic {context.topic} cannot be deserialized: {summarize(error)}",
            where=context.where,
            why="; ".join(filter(None, (reason(error), *getattr(error, "__notes__", ())))),
            hint=f"{own or WRITTEN_AS}, or let deserialization_exception_handler skip such records (continue, "
            "dead_letter)",
        ) from error


class _IterationError(Exception):
    """Wraps an error of the iteration, to distinguish it from an error in the loop's body."""


def _guarded(values: Iterable[Any]) -> Iterator[Any]:
    try:
        iterator = iter(values)
    except Exception as error:
        raise _IterationError from error
    while True:
        try:
            value = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            raise _IterationError from error
        yield value


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _position(context: RecordContext) -> str:
    topic, partition, offset, timestamp, _ = context
    return (
        "no input record" if topic is None else f"{topic}-{partition} offset {offset}, timestamp {timestamp}"
    )

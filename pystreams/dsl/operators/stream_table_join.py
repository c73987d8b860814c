"""Joins of a stream with a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.final_results import NULL_KEY_OR_VALUE
from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.dsl.operators.value_getter import ValueGetter, joiner_of_three
from pystreams.functions import UserFunction
from pystreams.record import Headers, RecordContext


@dataclass(eq=False, slots=True)
class StreamTableJoin(ObjectOperation):
    """Only records of the stream produce results, each with the record's timestamp. They are joined with the latest
    row, or in a versioned table with the row of their time. Source: KStreamKTableJoinProcessor."""

    table: ValueGetter
    joiner: UserFunction
    left: bool
    #: With a grace period: the store of the records that wait for late rows.
    store: str | None = None
    grace_ms: int = 0

    def open(self, environment: OperatorEnvironment) -> Operator:
        if self.store is not None:
            return Operator(self._waiting(environment, self.store))
        get, get_as_of = self.table.open(environment), self.table.open_as_of(environment)
        joiner, takes_key = self.joiner.call, self.joiner.takes_key
        drop, forward = environment.drop, environment.forward
        misses = Misses(passes=self.left)
        environment.count_misses(misses, Partner.in_table(self.table.store_names()))

        def go_on(look_up: Callable[..., Any]) -> None:
            nonlocal get, get_as_of
            if get_as_of is None:
                get = look_up
            else:
                get_as_of = look_up

        if get_as_of is None:
            get = misses.until_found(get, go_on)
        else:
            get_as_of = misses.until_found(get_as_of, go_on)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not misses.passes):
                drop(NULL_KEY_OR_VALUE)
                return
            if key is None:
                entry = None
            elif get_as_of is None:
                entry = get(key)
            else:
                entry = get_as_of(key, timestamp)
            if entry is not None:
                other = entry[0]
            else:
                misses.records += 1
                if not misses.passes:
                    return
                other = None
            forward(key, joiner(key, value, other) if takes_key else joiner(value, other), timestamp, headers)

        return Operator(process)

    def _meeter(self, environment: OperatorEnvironment) -> Callable[[Any, Any, int, Headers], None]:
        """The function that joins a record with the row of its time."""
        get_as_of, forward = self.table.open_as_of(environment), environment.forward
        assert get_as_of is not None, "only a table that keeps versions is joined with a grace period"
        read, join = get_as_of, joiner_of_three(self.joiner, swapped=False)
        misses = Misses(passes=self.left)
        environment.count_misses(misses, Partner.in_table(self.table.store_names()))

        def go_on(look_up: Callable[..., Any]) -> None:
            nonlocal read
            read = look_up

        read = misses.until_found(read, go_on)

        def meet(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            entry = read(key, timestamp)
            if entry is None:
                misses.records += 1
                if not misses.passes:
                    return
            forward(key, join(key, value, None if entry is None else entry[0]), timestamp, headers)

        return meet

    def _waiting(self, environment: OperatorEnvironment, store: str) -> Callable[..., None]:
        """Let each record wait until stream time is later by at least the grace period; a record that is itself older
        than that is joined at once. The number of records survives restarts (Java forgets it)."""
        buffer, cell = environment.store(store), environment.cell
        left, grace, drop, meet = self.left, self.grace_ms, environment.drop, self._meeter(environment)
        buffer.sequence = environment.load_state("written", 0)
        environment.save_state("written", lambda: buffer.sequence)
        #: No waiting record is older than this.
        earliest = 0

        decode_key, decode, failed = buffer.decode_key, buffer.decode_value, environment.failed_waiting

        def leave(raw: tuple[bytes, bytes], held: RecordContext) -> None:
            """Join a record that has waited. If that fails, the handler decides. In Java the record stays in the
            buffer, and every later record fails to produce results."""
            context, cell.record = cell.record, held
            key = value = None
            try:
                key, value = decode_key(raw[0]), decode(raw[1])
                meet(key, value, held[3], held[4])
            except Exception as error:  # noqa: BLE001 - users' functions raise what they like
                failed(error, key, value, raw)
            cell.record = context

        def leave_due() -> None:
            nonlocal earliest
            until = time.ms - grace
            if earliest > until:
                return
            for place, raw, held in buffer.due(earliest, until):
                leave(raw, held)
                buffer.remove(place)
            earliest = until + 1

        time = buffer.time = environment.observed(leave_due)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            nonlocal earliest
            if value is None or (key is None and not left):
                drop(NULL_KEY_OR_VALUE)
                return
            if key is None:
                raise TypeError("a record without a key cannot wait for its row")
            if timestamp < time.ms - grace:
                meet(key, value, timestamp, headers)
                return
            if timestamp > time.ms:
                time.see(timestamp)
            buffer.put(key, value, cell.record)
            earliest = min(earliest, timestamp)
            leave_due()

        return process

"""Joins of two streams: each side stores its records for a while, and is joined with the stored records of the
other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.dsl.join_windows import JoinWindows
from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment, misses_of_joiner
from pystreams.dsl.operators.changes import record_forwarder
from pystreams.dsl.operators.final_results import NULL_KEY_OR_VALUE
from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.dsl.operators.value_getter import joiner_of_three
from pystreams.functions import UserFunction
from pystreams.record import NO_HEADERS, Headers
from pystreams.serde.join_side import (
    SideValue,
    WaitingKey,
    record_key_of,
    since,
    unpack_time_and_side,
    value_of,
)
from pystreams.state.stores.list_store import elements

#: The time of the oldest waiting record, while no record waits.
_NEVER = 0x7FFFFFFFFFFFFFFF

#: The value of ``_NEVER`` plus a duration in Java, where the sum overflows: far in the past.
_LONG_AGO = -_NEVER


@dataclass(eq=False, slots=True)
class KeepForJoin(ObjectOperation):
    """Stores a stream's records for later records of the other stream. It forwards a record before storing it, so that
    in a join of a stream with itself each record is joined with itself once. Source: KStreamJoinWindow."""

    store: str

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        encode_key, write, forward = store.encode_key, store.write, environment.forward
        # The changelog may no longer have the last sequence number, or the time of a null value.
        written = environment.load_state("written", store.sequence)
        store.go_on(written, environment.load_state("stream_time", -1))
        environment.save_state("written", lambda: written)
        if not store.persistent:
            environment.save_state("stream_time", lambda: store.stream_time)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            nonlocal written
            forward(key, value, timestamp, headers)
            if key is not None:
                write(encode_key(key), timestamp, value)
                written += 1

        return Operator(process)


@dataclass(eq=False, slots=True)
class StreamJoin(ObjectOperation):
    """One side of a join: joins its records with those that the other side has stored.

    ``other`` is the other side's store. ``waiting`` is the store of unmatched records, which both sides of a left or
    outer join share; ``outer``: unmatched records of this side have a result, too. ``right``: this is the right side;
    the joiner takes the left value first in any case. Source: KStreamKStreamJoin.
    """

    other: str
    waiting: str | None
    joiner: UserFunction
    windows: JoinWindows
    outer: bool
    right: bool

    def open(self, environment: OperatorEnvironment) -> Operator:
        windows = self.windows
        before, after = windows.before_ms, windows.after_ms
        if self.right:
            before, after = after, before
        self._tell_late(environment)
        if self.waiting is None:
            return Operator(self._inner(environment, before, after))
        return Operator(self._with_waiting(environment, self.waiting, before, after))

    def _tell_late(self, environment: OperatorEnvironment) -> None:
        """Count records that come when the other side has forgotten some of their partners, although their own side
        still keeps them. Those that their own side drops are counted there."""
        store, cell, grace_ms = environment.store(self.other), environment.cell, self.windows.grace_ms
        read_by: dict[bool, Any] = environment.shared(f"stores of joiner {id(self.joiner)}", dict)
        read_by[self.right] = store

        def hidden(for_ms: int) -> None:
            # As in Java, the earliest partner leaves a millisecond before the window closes.
            if for_ms > 1 and read_by[not self.right].keeps(cell.record[3]):
                environment.late(store.stream_time, grace_ms + for_ms)

        store.on_hidden = hidden

    def _misses(self, environment: OperatorEnvironment) -> Misses:
        misses = misses_of_joiner(environment, self.joiner)
        if not self.right:
            environment.count_misses(misses, Partner.in_other_stream())
        return misses

    def _inner(self, environment: OperatorEnvironment, before: int, after: int) -> Callable[..., None]:
        store, drop = environment.store(self.other), environment.drop
        encode_key, between = store.encode_key, store.between
        forward, join = record_forwarder(environment), joiner_of_three(self.joiner, swapped=self.right)
        misses, own = self._misses(environment), (encode_key, join)

        def go_on() -> None:
            nonlocal encode_key, join
            encode_key, join = own

        encode_key, join = misses.counting(encode_key, go_on), misses.noting(join, go_on)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            found = between(encode_key(key), max(0, timestamp - before), max(0, timestamp + after))
            for other_timestamp, other in found:
                later = max(timestamp, other_timestamp)
                forward(key, join(key, value, other), later, headers)

        return process

    def _with_waiting(
        self, environment: OperatorEnvironment, waiting: str, before: int, after: int
    ) -> Callable[..., None]:
        store, drop = environment.store(self.other), environment.drop
        encode_key, between = store.encode_key, store.between
        forward, join = record_forwarder(environment), joiner_of_three(self.joiner, swapped=self.right)
        misses, own = self._misses(environment), (encode_key, join)

        def go_on() -> None:
            nonlocal encode_key, join
            encode_key, join = own

        encode_key, join = misses.counting(encode_key, go_on), misses.noting(join, go_on)
        shared = environment.shared(waiting, lambda: _Waiting(environment, waiting))
        emit_closed = shared.emitter(environment, self.joiner, self.windows, after)
        time, wait, met = shared.time, shared.wait, shared.met
        outer, is_left = self.outer, not self.right

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            now = time.ms
            if timestamp > now:
                if time.unbounded:
                    time.ms = now = timestamp
                elif timestamp > time.beyond_ms:
                    now = time.see(timestamp)
            if key is None or value is None:
                if outer and value is not None:
                    forward(None, join(None, value, None), timestamp, headers)
                else:
                    drop(NULL_KEY_OR_VALUE)
                return
            if timestamp >= now:
                emit_closed(headers)
            until = max(0, timestamp + after)
            alone = outer
            for other_timestamp, other in between(encode_key(key), max(0, timestamp - before), until):
                # Joined before the other record is removed from the waiting ones: if the joiner raises, it stays there.
                joined = join(key, value, other)
                alone = False
                met(other_timestamp, not is_left, key)
                forward(key, joined, max(timestamp, other_timestamp), headers)
            if not alone:
                return
            if until < now:
                forward(key, join(key, value, None), timestamp, headers)
            else:
                wait(timestamp, is_left, key, value)

        return process


@dataclass(eq=False, slots=True)
class SelfJoin(ObjectOperation):
    """A join of a stream with itself with a single store, which replaces both sides. Null keys and values are dropped,
    also in left and outer joins, because every record matches itself. Source: KStreamKStreamSelfJoin."""

    store: str
    joiner: UserFunction
    windows: JoinWindows

    def open(self, environment: OperatorEnvironment) -> Operator:
        store, drop = environment.store(self.store), environment.drop
        encode_key, between = store.encode_key, store.between
        forward, join = record_forwarder(environment), joiner_of_three(self.joiner, swapped=False)
        before, after, retention = self.windows.before_ms, self.windows.after_ms, self.windows.retention_ms
        time = environment.observed()

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            with_itself = join(key, value, value)
            now = time.ms
            if timestamp > now:
                if time.unbounded:
                    time.ms = now = timestamp
                elif timestamp > time.beyond_ms:
                    now = time.see(timestamp)
            key_bytes = encode_key(key)
            for other_timestamp, other in between(
                key_bytes, max(0, timestamp - before), max(0, timestamp + after)
            ):
                forward(key, join(key, value, other), max(timestamp, other_timestamp), headers)
            pending = timestamp > now - retention + 1
            for other_timestamp, other in between(
                key_bytes, max(0, timestamp - after), max(0, timestamp + before)
            ):
                # Results are in the order of time, as with two stores.
                if pending and other_timestamp > timestamp:
                    pending = False
                    forward(key, with_itself, timestamp, headers)
                forward(key, join(key, other, value), max(timestamp, other_timestamp), headers)
            if pending:
                forward(key, with_itself, timestamp, headers)

        return Operator(process)


class _FirstTime:
    """The time of the oldest waiting record, or that there is none, stored as two numbers that never decrease: when the
    saved numbers of several partitions are merged, the greater one wins."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._raised = environment.load_state("first_raised", 0)
        #: Twice the sum of all decreases of the time; odd while no record waits.
        self._lowered = environment.load_state("first_lowered", 1)
        environment.save_state("first_raised", lambda: self._raised)
        environment.save_state("first_lowered", lambda: self._lowered)
        self.time = _NEVER if self._lowered % 2 else self._raised - self._lowered // 2

    def set(self, time: int) -> None:
        """Set the time; ``_NEVER``: no record waits."""
        if time == self.time:
            return
        self.time = time
        if time == _NEVER:
            self._lowered += 1
            return
        self._lowered += self._lowered % 2
        change = time - (self._raised - self._lowered // 2)
        if change > 0:
            self._raised += change
        else:
            self._lowered -= 2 * change


class _Waiting:
    """The unmatched records of both sides of a join in one task. They are emitted in the order of time, once they can
    have no match any more.

    Stream time and the time of the oldest waiting record are shared by both sides. The latter survives restarts, too
    (Java forgets it). Source: KStreamImplJoin.TimeTracker, KStreamKStreamJoin.emitNonJoinedOuterRecords.
    """

    def __init__(self, environment: OperatorEnvironment, store: str) -> None:
        self.time = environment.observed(self._emit)
        #: Emits the records whose windows have closed; each side has such a function, and any of them does it for both.
        self._emit_closed: Callable[..., None] | None = None
        #: As Java tracks it: the time of the last record that the search for records to emit has read.
        self._first = _FirstTime(environment)
        self._store = environment.store(store)
        #: Whether records may wait. After a restart this is not known before the store is read.
        self._maybe_some = True
        #: No waiting record is older than this, so reading the store starts here. Earlier records are deleted, but
        #: RocksDB keeps the deletions for a time, and skipping them would take longer and longer.
        self._earliest = 0

    def _emit(self) -> None:
        """Emit everything that has closed. A record searches, as in Java, only after the record that the last search
        read has closed, although earlier ones may have closed before; but no other record may come."""
        if self._emit_closed is not None:
            self._emit_closed(NO_HEADERS, by_record=False)

    def wait(self, timestamp: int, left: bool, key: Any, value: Any) -> None:
        """Store a record without a match."""
        first = self._first
        if timestamp < first.time:
            first.set(timestamp)
        self._maybe_some = True
        self._earliest = min(self._earliest, timestamp)
        store = self._store
        store.append(
            store.encode_key(WaitingKey(timestamp, left, key)), store.encode_value(SideValue(left, value))
        )

    def met(self, timestamp: int, left: bool, key: Any) -> None:
        """Remove the waiting records with this key, side and time, because they have a match."""
        if self._maybe_some:
            store = self._store
            key_bytes = store.encode_key(WaitingKey(timestamp, left, key))
            if store.overlay.get(key_bytes) is not None:
                store.remove(key_bytes)

    def emitter(
        self, environment: OperatorEnvironment, joiner: UserFunction, windows: JoinWindows, after: int
    ) -> Callable[[Headers], None]:
        """The function that a side calls for each record that is not late; ``after`` is that of the side."""
        leave = self._leaver(environment, joiner)
        store, grace = self._store, windows.grace_ms
        left_after, right_after = windows.after_ms, windows.before_ms
        walk, remove = store.overlay.walk, store.remove
        time = self.time

        def emit_if_due(headers: Headers) -> None:
            if self._earliest_end(after + grace) < time.ms:
                emit_closed(headers)

        def emit_closed(headers: Headers, *, by_record: bool = True) -> None:
            first = earliest = _NEVER
            open_sides: set[bool] = set()
            emitted = b""
            try:
                for key_bytes, packed in walk(since(self._earliest)) if self._maybe_some else ():
                    first, left = unpack_time_and_side(key_bytes)
                    if len(open_sides) == 2:
                        break
                    if first + (left_after if left else right_after) + grace >= time.ms:
                        open_sides.add(left)
                        earliest = min(earliest, first)
                        if len(open_sides) == 2 and len(elements(packed)) > 1:
                            break
                        continue
                    for element in elements(packed):
                        leave(key_bytes, element, first, left, headers)
                        # As in Java, an entry is removed after the next is emitted: on a failure it is emitted again.
                        if emitted not in (b"", key_bytes):
                            remove(emitted)
                        emitted = key_bytes
            finally:
                if not by_record:
                    # Java does not search here, so the next record must not search later because of it.
                    first = min(first, earliest)
                # A record beyond a bound on stream time must not hide those before it until its own window closes.
                self._first.set(first if first == _NEVER else min(first, time.ms))
            if emitted:
                remove(emitted)
            self._maybe_some = bool(open_sides)
            self._earliest = earliest

        self._emit_closed = emit_closed
        return emit_if_due

    def _leaver(
        self, environment: OperatorEnvironment, joiner: UserFunction
    ) -> Callable[[bytes, bytes, int, bool, Headers], None]:
        """A function that joins an unmatched record with None and emits it. If that fails, the handler decides. In
        Java the record stays in the store, and every later record fails to produce results."""
        cell, failed = environment.cell, environment.failed_waiting
        forward, join = record_forwarder(environment), joiner_of_three(joiner, swapped=False)
        decode_key, decode = self._store.decode_key, self._store.decode_value

        def leave(key_bytes: bytes, element: bytes, timestamp: int, left: bool, headers: Headers) -> None:
            key = value = None
            try:
                key, value = decode_key(key_bytes).key, decode(element).value
                joined = join(key, value, None) if left else join(key, None, value)
            except Exception as error:  # noqa: BLE001 - users' functions raise what they like
                context, cell.record = cell.record, (None, -1, -1, timestamp, NO_HEADERS)
                failed(error, key, value, (record_key_of(key_bytes), value_of(element)))
                cell.record = context
                return
            forward(key, joined, timestamp, headers)

        return leave

    def _earliest_end(self, after_and_grace: int) -> int:
        """When the window of the oldest waiting record closes, computed as in Java, with its overflow."""
        first = self._first.time
        if first == _NEVER and after_and_grace > 0:
            return _LONG_AGO
        return first + after_and_grace

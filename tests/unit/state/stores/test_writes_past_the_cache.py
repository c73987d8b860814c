"""Values that are written past the cache have the effects of those that the cache flushes: in the store, in the
changelog, and for the listener."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.record import NO_HEADERS, RecordContext
from pystreams.serde import INT, JsonSerde
from pystreams.state.spec import StoreSpec
from tests.unit.state.state_kit import Task, read_all, timestamped, timestamped_window

#: Keys, each with its value (None: deleted) and timestamp, in the order in which they are written.
Batch = dict[int, tuple[int | None, int]]

BATCHES = st.lists(
    st.dictionaries(st.integers(0, 5), st.tuples(st.none() | st.integers(0, 99), st.integers(0, 99))),
    max_size=3,
)


class Written:
    """A task that gets batches past its cache, or through it."""

    def __init__(self, spec: StoreSpec, *, past: bool, send_old_values: bool) -> None:
        self.past = past
        self.task = Task(spec)
        self.changes: list[Any] = []
        self.task.store.on_flush(self._change, send_old_values)

    def _change(self, *change: Any) -> None:
        self.changes.append((*change, self.task.cell.record))

    def write(self, batch: Batch) -> None:
        before = self.task.cell.record
        entries = [
            (
                self._address(number),
                None if value is None else self._value(value),
                time,
                self._context(number),
            )
            for number, (value, time) in batch.items()
        ]
        if self.past:
            self.task.store.write_past_cache(entries)
        else:
            for address, value, time, context in entries:
                self.task.cell.record = context
                where = address if isinstance(address, tuple) else (address,)
                self.task.store.write(*where, value, time)
            self.task.cell.record = before
        assert self.task.cell.record is before
        self.task.commit()

    def _address(self, number: int) -> Any:
        windowed = self.task.store.spec.kind == "timestamped_window"
        return (b"key", 10 * number) if windowed else b"key %d" % number

    def _value(self, number: int) -> Any:
        return number if self.task.store.spec.value_serde is INT else [number]

    @staticmethod
    def _context(number: int) -> RecordContext:
        return ("in", 0, number, 7 * number, (("trace", b"%d" % number),) if number % 2 else NO_HEADERS)

    def result(self) -> tuple[Any, ...]:
        return self.changes, self.task.changelog, read_all(self.task.store.all())


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("serde", [INT, JsonSerde(list)], ids=["objects in the cache", "bytes in the cache"])
@pytest.mark.parametrize("make", [timestamped, timestamped_window])
@given(batches=BATCHES, send_old_values=st.booleans())
def test_the_effects_are_those_of_a_flush(
    make: Any, serde: Any, persistent: bool, batches: list[Batch], send_old_values: bool
) -> None:
    spec = make(value_serde=serde, persistent=persistent, cached=True)
    results = []
    for past in (True, False):
        written = Written(spec, past=past, send_old_values=send_old_values)
        with written.task:
            for batch in batches:
                written.write(batch)
            results.append(written.result())
    assert results[0] == results[1]

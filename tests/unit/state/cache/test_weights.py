"""A cached value weighs as much as its bytes, whether they are written to be weighed or not, and a value that has no
bytes is refused before it is cached."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.serde import BOOL, BYTES, FLOAT, FLOAT32, INT, INT16, INT32, STR, UUID, JsonSerde, Serde
from pystreams.state.cache.thread_cache import ENTRY_OVERHEAD_BYTES
from pystreams.state.formats import TIMESTAMP_BYTES
from tests.unit.state.state_kit import Task, timestamped

VALUES = st.one_of(
    *(
        st.tuples(st.just(of), st.integers(-(1 << bits), (1 << bits) - 1))
        for of, bits in ((INT, 63), (INT32, 31), (INT16, 15))
    ),
    st.tuples(st.just(FLOAT), st.floats()),
    st.tuples(st.just(FLOAT), st.integers(-1000, 1000)),
    st.tuples(st.just(FLOAT32), st.floats(width=32)),
    st.tuples(st.sampled_from((INT, FLOAT, BOOL)), st.booleans()),
    st.tuples(st.just(STR), st.text()),
    st.tuples(st.just(BYTES), st.binary()),
    st.tuples(st.just(UUID), st.uuids()),
    st.tuples(st.just(JsonSerde(tuple[int, str])), st.tuples(st.integers(0, 1 << 60), st.text())),
)


@contextmanager
def cached(serde: Serde[Any]) -> Iterator[Task]:
    with Task(timestamped(value_serde=serde, persistent=False, cached=True)) as task:
        task.at(1)
        yield task


@given(VALUES)
def test_an_entry_weighs_what_its_bytes_do(of: tuple[Serde[Any], Any]) -> None:
    serde, value = of
    with cached(serde) as task:
        task.store.write(b"key", value, 1)
        item_bytes = TIMESTAMP_BYTES + len(serde.serializer("t")(value))
        topic = task.cell.record[0] or ""
        assert task.store.cache.size_bytes == ENTRY_OVERHEAD_BYTES + len(b"key") + item_bytes + len(topic)


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (INT, 1 << 63),
        (INT, -(1 << 63) - 1),
        (INT, 1.0),
        (INT, "1"),
        (INT32, 1 << 31),
        (INT16, -(1 << 15) - 1),
        (FLOAT, "1.5"),
        (FLOAT, 1 << 2000),
        (BOOL, 2),
        (STR, 1),
        (UUID, str(uuid.UUID(int=1))),
    ],
)
def test_what_cannot_be_written_is_not_cached(serde: Serde[Any], value: Any) -> None:
    with cached(serde) as task:
        with pytest.raises(Exception, match=r".+"):
            task.store.write(b"key", value, 1)
        assert task.store.read(b"key") is None
        assert task.store.cache.size_bytes == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0])
def test_floats_without_a_number_weigh_as_much_as_others(value: float) -> None:
    with cached(FLOAT) as task:
        task.store.write(b"key", 1.5, 1)
        before = task.store.cache.size_bytes
        task.store.write(b"key", value, 1)
        assert task.store.cache.size_bytes == before

"""A stored value gives back what its changelog had: value, timestamp, headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import StateCorruptedError
from pystreams.record import Headers, RecordBatch
from pystreams.state.value_forms import (
    FORMS,
    TIMESTAMPED_WITH_HEADERS,
    WITH_HEADERS,
    ValueForm,
    after_headers,
    headers_before,
    packed_headers,
    with_headers_apart,
    with_headers_joined,
)

HEADERS = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.none() | st.binary(max_size=300)),
    max_size=80,
).map(tuple)
TIMES = st.integers(-(2**63), 2**63 - 1)


@given(st.sampled_from(list(FORMS.values())), st.binary(), TIMES, HEADERS)
def test_a_form_keeps_what_it_is_for(form: ValueForm, value: bytes, timestamp: int, headers: Headers) -> None:
    stored = form.to_stored(value, timestamp, headers)
    assert form.parts(stored) == (
        value,
        timestamp if form.timestamped else None,
        headers if form.headers else (),
    )
    logged, _ = form.logged_value(stored)
    assert form.of_logged(logged, timestamp) == stored


def test_values_with_headers_have_javas_bytes() -> None:
    headers = (("h", b"1"), ("né", None), ("", b""))
    # What ValueTimestampHeadersSerializer and AggregationWithHeadersSerializer of Kafka Streams 4.3.1 write.
    packed = bytes.fromhex("180602680231066ec3a9010000")
    assert TIMESTAMPED_WITH_HEADERS.to_stored(b"v", 5, headers) == packed + bytes(7) + b"\x05v"
    assert WITH_HEADERS.to_stored(b"v", 5, headers) == packed + b"v"
    assert headers_before(packed + b"v") == (headers, len(packed))
    long = packed_headers((("name", bytes(200)),))
    assert long.startswith(bytes.fromhex("a00302086e616d65900300"))
    assert after_headers(long + b"v") == len(long)


def test_without_headers_a_value_has_one_byte_more() -> None:
    assert TIMESTAMPED_WITH_HEADERS.to_stored(b"v", 5, ()) == b"\x00" + bytes(7) + b"\x05v"
    assert WITH_HEADERS.to_stored(b"v", 5, ()) == b"\x00v"


@pytest.mark.parametrize("damaged", ["0e", "0402", "0a02026802", "0c020268023100", "0a0202680531"])
def test_damaged_headers_are_an_error_that_says_so(damaged: str) -> None:
    with pytest.raises(StateCorruptedError, match="headers of a stored value"):
        headers_before(bytes.fromhex(damaged))


@given(st.lists(st.tuples(st.binary(), st.none() | st.binary(), HEADERS)))
def test_entries_become_records_and_back(rows: list[tuple[bytes, bytes | None, Headers]]) -> None:
    kept = [headers if value is not None else () for _, value, headers in rows]
    values = [value for _, value, _ in rows]
    batch = RecordBatch("t", 0, [k for k, _, _ in rows], values, [0] * len(rows), range(len(rows)), kept, 9)
    joined = with_headers_joined(batch)
    apart = with_headers_apart(
        RecordBatch("t", 0, batch.keys, joined, batch.timestamps, batch.offsets, None, 9)
    )
    assert (apart.values, apart.headers) == (values, kept)

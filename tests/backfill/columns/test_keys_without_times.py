"""A key that is too short to hold a window or a session is refused, not cut."""

from __future__ import annotations

import pytest

from pystreams.backfill.columns.key_spans import Spans
from pystreams.errors import SerializationError


@pytest.mark.parametrize(
    "spans,of",
    [
        (Spans("windows"), "window"),
        (Spans("windows", numbered=False), "window"),
        (Spans("sessions"), "session"),
    ],
)
def test_a_short_key_is_refused(spans: Spans, of: str) -> None:
    with pytest.raises(SerializationError) as refused:
        spans.split(b"short", "store sums")
    assert str(refused.value) == (
        f"a key is too short to end with the times of a {of}\n"
        "  where: store sums\n"
        f"  next: check that these are keys of {of}s"
    )

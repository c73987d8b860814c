"""What does not fit beside the offsets goes to a record, and only then; no text is too long for a broker."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.engine.offset_metadata import TEXT_CHARACTERS_MAX, encode_committed, merge_committed
from pystreams.engine.overflow import OverflowReference
from pystreams.ids import TopicPartition

A, B = TopicPartition("a", 3), TopicPartition("b", 3)
NOW_MS = 1_795_251_357_500
#: What others than the owner of a task read.
READ_BY_OTHERS = {"py//time": 5, "py//seen": 7, "py//head": 9, "py/step/late": 3, "py/step/late_ms": 4}


class Records:
    """Keeps what does not fit."""

    def __init__(self) -> None:
        self.written: dict[OverflowReference, Mapping[str, int]] = {}

    def __call__(self, numbers: Mapping[str, int], has_emitted: bool) -> OverflowReference:
        reference = OverflowReference(2, 12, 3, 70, -(2**63) + len(self.written), has_emitted)
        self.written[reference] = dict(numbers)
        return reference


def steps(count: int) -> dict[str, int]:
    """The numbers of steps whose times have nothing in common."""
    choose = random.Random(count)
    return {
        f"py/KSTREAM-AGGREGATE-{number:010}/stream_time": choose.randrange(NOW_MS) for number in range(count)
    }


def emitted(count: int) -> dict[str, int]:
    """Java's numbers."""
    choose = random.Random(count)
    return {f"KSTREAM-AGGREGATE-STATE-STORE-{n:010}": choose.randrange(NOW_MS) for n in range(count)}


@given(st.integers(0, 700), st.integers(0, 700), st.booleans())
@example(700, 0, True)
@example(0, 700, False)
@example(700, 700, True)
@example(700, 40, False)
def test_everything_is_read_back_and_no_text_is_too_long(ours: int, javas: int, more: bool) -> None:
    own, foreign = {**steps(ours), **(READ_BY_OTHERS if more else {})}, emitted(javas)
    records = Records()
    # Java's numbers come from steps, and from Java.
    of_steps = dict(list(foreign.items())[::2])
    committed = encode_committed({A: 5, B: 7}, {A: 1, B: 2}, own | of_steps, foreign, records)
    assert max(len(at.metadata) for at in committed.values()) <= TEXT_CHARACTERS_MAX
    merged = merge_committed(committed)
    assert merged.overflow == records.written.keys()
    assert {name: merged.own.get(name) for name in own.keys() & READ_BY_OTHERS.keys()} == (
        READ_BY_OTHERS if more else {}
    )
    whole = merged.with_overflow(records.written)
    assert (whole.own, whole.foreign, whole.overflow) == (own, foreign, frozenset())


def test_what_fits_is_in_no_record() -> None:
    records = Records()
    own = steps(200)
    assert encode_committed({A: 5}, {}, own, {}, records) == encode_committed({A: 5}, {}, own, {})
    assert not records.written


def test_javas_numbers_stay_where_java_finds_them_if_they_fit_there() -> None:
    records = Records()
    merged = merge_committed(encode_committed({A: 5}, {}, steps(700), emitted(30), records))
    assert merged.foreign == emitted(30)
    assert [reference.has_emitted for reference in merged.overflow] == [False]
    merged = merge_committed(encode_committed({A: 5}, {}, steps(700), emitted(300), records))
    assert merged.foreign == {}
    assert [reference.has_emitted for reference in merged.overflow] == [True]


def test_a_reference_that_java_has_carried_along_is_not_followed() -> None:
    at = encode_committed({A: 5}, {}, steps(700), {}, Records())[A]
    assert merge_committed({A: at}).overflow
    assert not merge_committed({A: replace(at, offset=6)}).overflow

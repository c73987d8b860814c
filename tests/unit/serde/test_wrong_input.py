"""Wrong input is an error that says topic, type and what was found; never a value."""

from __future__ import annotations

import contextlib
import math
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import SerializationError
from pystreams.serde import (
    BOOL,
    BYTES,
    FLOAT,
    FLOAT32,
    INT,
    INT16,
    INT32,
    STR,
    UUID,
    VOID,
    ChangeSerde,
    JsonSerde,
    ListSerde,
    MsgpackSerde,
    SessionWindowedSerde,
    TimeWindowedSerde,
)


class Order(msgspec.Struct):
    id: int


@pytest.mark.parametrize(
    "serde,length", [(INT, 8), (INT32, 4), (INT16, 2), (FLOAT, 8), (FLOAT32, 4), (BOOL, 1)], ids=repr
)
@pytest.mark.parametrize("found", [0, 3, 9])
def test_a_wrong_length_is_reported_with_both_lengths(serde, length, found):
    with pytest.raises(SerializationError) as caught:
        serde.deserializer("orders")(bytes(found))
    assert caught.value.what == (
        f"{length} byte{'' if length == 1 else 's'} expected for {serde!r}, {found} found"
    )
    assert caught.value.where == "topic orders"


WRONG = [
    (BOOL, b"\x02", "a bool must be the byte 0 or 1, but is 2"),
    (UUID, b"no-uuid", "not the text form of a UUID"),
    (UUID, b'"\xff', "not the text form of a UUID"),
    (TimeWindowedSerde(STR, 10), b"seven b", "at least 8 bytes, but has 7"),
    (TimeWindowedSerde(STR, 10), b"", "at least 8 bytes, but has 0"),
    (SessionWindowedSerde(STR), b"", "at least 16 bytes, but has 0"),
    (SessionWindowedSerde(STR), bytes(15), "at least 16 bytes, but has 15"),
    (TimeWindowedSerde(STR, 10), b"k" + b"\xff" * 8, "a window starts at -1, before 1970"),
    (TimeWindowedSerde(STR, 10, changelog=True), b"k" + bytes(8), "at least 8 bytes, but has 5"),
    (SessionWindowedSerde(STR), b"k" + bytes(8) + b"\xff" * 8, "a window starts at -1, before 1970"),
    (SessionWindowedSerde(STR), b"k" + bytes(15) + b"\x01", "a session ends (0) before it starts (1)"),
    (ListSerde(STR), b"", "0 bytes end too soon"),
    (ListSerde(STR), b"\x02", "unknown flag"),
    (ListSerde(STR), bytes(9), "its elements have a constant size, but those of the serde have not"),
    (ListSerde(STR), b"\x01\0\0\0\x01", "5 bytes end too soon"),
    (ListSerde(STR), b"\x01\0\0\0\x01\0\0\0\x02a", "an element should have 2 bytes, in 10 bytes"),
    (ListSerde(STR), b"\x01\xff\xff\xff\xff", "it should have -1 elements, in 5 bytes"),
    (ListSerde(INT), bytes(8) + b"\x01\x01", "10 bytes end within an element"),
    (ListSerde(INT), bytes(5) + b"\x7f\0\0\0", "2130706432 elements, in 9 bytes"),
    (ListSerde(INT), b"\0\x7f\0\0\0", "2130706432 elements, in 5 bytes"),
    (VOID, b"x", "0 bytes expected for void, 1 found"),
    (ChangeSerde(STR), b"", "it is empty"),
    (ChangeSerde(STR), b"a\x09", "unknown flag 9"),
    (ChangeSerde(STR), b"a\x07\x04", "the byte before the flag is not 0 or 1"),
    (ChangeSerde(STR), b"\x14a\x02", "its new value should have 10 bytes, in 3 bytes"),
    (ChangeSerde(STR), b"\x01a\x02", "its new value should have -1 bytes"),
    (ChangeSerde(STR), b"\xff\xff\xff\xff\xff\x02", "its length has no end"),
    (JsonSerde(Order), b'{"id": "x"}', "Expected `int`, got `str` - at `$.id`"),
    (JsonSerde(dict), b"[1]", "Expected `object`, got `array`"),
    (JsonSerde(dict), b'{"a', "truncated"),
    (JsonSerde(list), b"[" * 100_000, "RecursionError"),
    (JsonSerde(dict), b'{"\xff": 1}', "decode byte 0xff"),
    (MsgpackSerde(Order), b"\x81\xa2id\xa1x", "Expected `int`, got `str` - at `$.id`"),
    (MsgpackSerde(Order), b"", "truncated"),
]


@pytest.mark.parametrize("serde,data,text", WRONG, ids=[f"{serde!r}-{data[:20]}" for serde, data, _ in WRONG])
def test_malformed_bytes_are_reported_with_topic_and_reason(serde, data, text):
    with pytest.raises(SerializationError) as caught:
        serde.deserializer("orders")(data)
    assert text in str(caught.value)
    assert "topic orders" in str(caught.value)


@pytest.mark.parametrize(
    "serde", [ChangeSerde(STR), TimeWindowedSerde(STR, 10), JsonSerde(Order), UUID], ids=repr
)
@given(data=st.binary())
def test_no_bytes_raise_anything_but_unreadable(serde, data):
    with contextlib.suppress(SerializationError, UnicodeDecodeError):
        serde.deserializer("orders")(data)


def test_text_that_is_no_utf_8_is_an_error_and_not_replaced():
    with pytest.raises(UnicodeDecodeError):
        STR.deserializer("orders")(b"\xffa")


WRONG_VALUES = [
    (STR, 1, TypeError),
    (STR, "half a \ud800 character", UnicodeEncodeError),
    (INT, "1", struct.error),
    (INT, 1.5, struct.error),
    (INT, 1 << 63, struct.error),
    (INT32, 1 << 31, struct.error),
    (INT16, 1 << 15, struct.error),
    (FLOAT, "1", struct.error),
    (FLOAT32, 3.5e38, OverflowError),
    (VOID, "x", SerializationError),
    (BYTES, "text", TypeError),
    (BYTES, 5, TypeError),
    (BOOL, "yes", TypeError),
    (UUID, "123e4567-e89b-12d3-a456-426614174000", TypeError),
    (ChangeSerde(STR), (None, None), SerializationError),
    (JsonSerde(dict), {"x": object()}, TypeError),
]


@pytest.mark.parametrize(
    "serde,value,error", WRONG_VALUES, ids=[f"{serde!r}-{value!r}"[:40] for serde, value, _ in WRONG_VALUES]
)
def test_a_value_of_another_type_is_not_written(serde, value, error):
    with pytest.raises(error):
        serde.serializer("orders")(value)


@pytest.mark.parametrize("codec", [JsonSerde, MsgpackSerde])
@pytest.mark.parametrize(
    "type_,wrong", [(dict, [1]), (list[int], {"a": 1}), (Order, {"id": 1}), (dict, "text")]
)
def test_a_value_of_another_class_is_not_written(codec, type_, wrong):
    for write in (codec(type_).serializer("orders"), codec(type_).key_serializer("orders")):
        with pytest.raises(
            SerializationError, match=rf"type {type(wrong).__name__} cannot be serialized as"
        ) as caught:
            write(wrong)
        assert caught.value.where == "topic orders"


def test_json_writes_nan_as_null_and_msgpack_keeps_it():
    assert JsonSerde(dict).serializer("topic")({"a": math.nan, "b": math.inf}) == b'{"a":null,"b":null}'
    data = MsgpackSerde(dict).serializer("topic")({"a": math.inf})
    assert MsgpackSerde(dict).deserializer("topic")(data) == {"a": math.inf}

"""Every byte is the one that Kafka's own serdes give: the vectors were written by them (see "source" in the file)."""

from __future__ import annotations

import json
import math
import uuid
from pathlib import Path
from typing import Any

import pytest

from pystreams.serde import (
    BOOL,
    FLOAT,
    FLOAT32,
    INT,
    INT16,
    INT32,
    STR,
    UUID,
    ChangeSerde,
    ListSerde,
    SessionWindowedSerde,
    TimeWindowedSerde,
)
from pystreams.windowed import Windowed

VECTORS = json.loads(Path(__file__).with_name("java_vectors.json").read_text())["serdes"]
PLAIN = {"str": STR, "int": INT, "int32": INT32, "int16": INT16, "float32": FLOAT32, "bool": BOOL}


def serde_and_value(kind: str, value: Any):
    match kind.split("_"):
        case ["float"]:
            return FLOAT, float(value)
        case ["uuid"]:
            return UUID, uuid.UUID(value)
        case ["windowed", inner]:
            key, start, end = value
            return TimeWindowedSerde(PLAIN[inner], end - start), Windowed(key, start, end)
        case ["session", inner]:
            return SessionWindowedSerde(PLAIN[inner]), Windowed(*value)
        case ["list", *inner]:
            elements = [serde_and_value("_".join(inner), element) for element in value if element is not None]
            serde, _ = elements[0] if elements else (PLAIN[inner[0]], None)
            rest = iter([element for _, element in elements])
            return ListSerde(serde), [None if element is None else next(rest) for element in value]
        case ["change", inner]:
            return ChangeSerde(PLAIN[inner]), tuple(value)
        case _:
            return PLAIN[kind], value


@pytest.mark.parametrize(
    "kind,value,expected", VECTORS, ids=[f"{kind}-{i}" for i, (kind, *_) in enumerate(VECTORS)]
)
def test_values_are_written_and_read_as_in_java(kind, value, expected):
    serde, value = serde_and_value(kind, value)
    data = bytes.fromhex(expected)
    assert serde.serializer("topic")(value) == data
    read = serde.deserializer("topic")(data)
    assert read == value or (math.isnan(read) and math.isnan(value))
    assert type(read) is type(value)


def test_the_keys_of_a_window_stores_changelog_have_a_number_behind_the_start():
    # As Java's deserializer for changelogs reads them.
    data = bytes.fromhex("6b000000000000000500000001")
    assert TimeWindowedSerde(STR, 10, changelog=True).deserializer("topic")(data) == Windowed("k", 5, 15)


@pytest.mark.parametrize("length,prefix", [(9_000, "d08c01"), (63, "7e"), (64, "8001")])
def test_the_length_of_a_long_new_value_is_a_zig_zag_varint(length, prefix):
    data = ChangeSerde(STR).serializer("topic")(("x" * length, "o"))
    assert data.hex().startswith(prefix + "78")
    assert ChangeSerde(STR).deserializer("topic")(data) == ("x" * length, "o")


def test_every_nan_is_javas_one_nan():
    minus_nan = math.copysign(math.nan, -1.0)
    assert FLOAT.serializer("topic")(minus_nan).hex() == "7ff8000000000000"
    assert FLOAT32.serializer("topic")(minus_nan).hex() == "7fc00000"


@pytest.mark.parametrize(
    "data,change", [("610104", ("a", None)), ("610003", (None, "a")), ("0261620105", ("a", "b"))]
)
def test_the_latest_flag_of_a_versioned_table_is_passed_over(data, change):
    assert ChangeSerde(STR).deserializer("topic")(bytes.fromhex(data)) == change


def test_a_window_that_would_end_past_64_bits_ends_at_their_limit():
    serde = TimeWindowedSerde(STR, (1 << 63) - 1)
    assert serde.deserializer("topic")(bytes(7) + b"\x09") == Windowed("", 9, (1 << 63) - 1)


def test_windows_of_one_key_go_to_the_partition_of_that_key():
    partition_bytes = TimeWindowedSerde(STR, 10).partition_bytes("topic")
    assert partition_bytes(Windowed("UA", 0, 10)) == partition_bytes(Windowed("UA", 90, 100)) == b"UA"
    assert STR.partition_bytes("topic") is None
    of_sessions = SessionWindowedSerde(STR).partition_bytes("topic")
    assert of_sessions(Windowed("UA", 0, 10)) == of_sessions(Windowed("UA", 3, 90)) == b"UA"

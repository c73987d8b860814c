"""What ``consume --json`` writes, ``produce --json`` reads as the same bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import open_log
from pystreams.cli.records.input_records import JsonRecords
from pystreams.cli.records.json_records import json_line
from pystreams.cli.records.known_formats import AUTO, FORMATS, format_named
from pystreams.record import RecordBatch
from pystreams.timestamps import ConsumedRecord

SPACED = st.sampled_from(
    [b"null", b'"a"', b" 1", b'{"a": 1}', b'{"a":1.50,"a":2}', b"[1,\n2]", b"NaN", b"1e999", b"-0"]
)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda n: n.to_bytes(8, "big", signed=True)),
    st.integers(0, 2**41).map(lambda n: b"key" + n.to_bytes(8, "big")),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=5,
).map(lambda content: json.dumps(content).encode())
CONTENT = st.one_of(st.none(), st.binary(), st.text().map(str.encode), JSON, NUMBERS, SPACED)
HEADERS = st.lists(st.tuples(st.text(), st.one_of(st.none(), st.binary(), st.just(b"text"))), max_size=3).map(
    tuple
)
EXACT = [AUTO, *FORMATS.values()]


def read(line: str):
    reader = JsonRecords(
        FORMATS["str"], FORMATS["str"], lambda name, part: format_named(name, "t", part, auto=False)
    )
    (record,) = reader([line])
    return record


@given(
    CONTENT,
    CONTENT,
    st.sampled_from(EXACT),
    st.sampled_from(EXACT),
    st.integers(0, 2**62),
    HEADERS,
    st.integers(0, 9),
)
def test_every_record_comes_back_equal_to_the_byte(
    key, value, key_format, value_format, time, headers, partition
):
    batch = RecordBatch("t", partition, [key], [value], [time], [7], [headers], 8)
    line = json_line(batch, 0, key_format, value_format)
    assert "\n" not in line
    assert "\r" not in line
    json.loads(line)
    record = read(line + "\n")
    assert (record.key, record.value, record.timestamp, record.headers, record.partition) == (
        key,
        value,
        time,
        headers,
        partition,
    )


@pytest.mark.parametrize(
    "value,shown",
    [
        (b"to be", '"value": "to be"'),
        (b'{"n": 1}', '"value": {"n": 1}'),
        (b"12", '"value": 12'),
        ((12).to_bytes(8, "big"), '"value": 12, "value_type": "int"'),
        (b'"a"', '"value": "a", "value_type": "json"'),
        (b"null", '"value": null, "value_type": "json"'),
        (None, '"value": null}'),
        (b"\xff", '"value": "ff", "value_type": "hex"'),
        (
            b"AA" + (1_356_998_400_000).to_bytes(8, "big"),
            '"value": "AA@2013-01-01T00:00:00Z", "value_type": "windowed"',
        ),
        (
            b"AA" + (1_356_998_460_000).to_bytes(8, "big") + (1_356_998_400_000).to_bytes(8, "big"),
            '"value": "AA@2013-01-01T00:00:00Z/2013-01-01T00:01:00Z", "value_type": "session"',
        ),
        (b"[1,\n2]", r'"value": "[1,\n2]"'),
    ],
)
def test_numbers_text_and_json_stay_what_programs_can_use(value, shown):
    assert shown in json_line(RecordBatch("t", 0, [None], [value], [1], [0], None, 1), 0, AUTO, AUTO)


def records(topic: str) -> list[ConsumedRecord]:
    """By partition, without their topic."""
    with open_log() as log:
        return sorted((record[1:] for record in log.consume(topic)), key=lambda record: record[:2])


def test_a_topic_is_copied_by_the_commands(pystreams):
    pystreams("topics", "create", "one", "two", "-p", "3", "-c", "retention.ms=-1")
    with open_log() as log:
        for number in range(30):
            value = None if number % 7 == 0 else bytes([number, 255 - number]) * (number % 5)
            headers = (("h", None), ("b", bytes([number, 200]))) if number % 3 == 0 else ()
            key, partition = str(number), number % 3
            log.produce("one", key, value, timestamp=number * 1000, headers=headers, partition=partition)
    lines = pystreams("consume", "one", "--json").out
    copied = pystreams("produce", "two", "--json", stdin=lines)
    assert copied.code == 0, copied.err
    assert "Wrote 30 records to two." in copied.err
    assert records("two") == records("one")


@pytest.fixture
def topic(pystreams):
    pystreams("topics", "create", "t", "-p", "2", "-c", "retention.ms=-1")
    return "t"


def test_a_line_by_hand_needs_a_value_and_nothing_else(pystreams, topic):
    assert (
        pystreams("produce", topic, "--json", stdin='{"value": "x"}\n\n{"key": 5, "value": null}\n').code == 0
    )
    shown = sorted(line.split("\t")[1:] for line in pystreams("consume", topic).lines)
    assert shown == [["5", "null"], ["null", "x"]]


@pytest.mark.parametrize(
    "line,said",
    [
        ("to be", "is not a record"),
        ('{"id": 1}', "is not a record"),
        ('{"key": 1}', "missing required field `value`"),
        ('{"value": 1, "timestmp": 3}', "unknown field `timestmp`"),
        ('{"value": 1, "value_type": "itn"}', "There is no format 'itn'"),
        ('{"value": "x", "value_type": "int"}', "invalid literal"),
        ('{"value": "x", "headers": [["h", "xyz", "hex"]]}', "non-hexadecimal"),
        ('{"value": "x", "headers": [["h", "xyz", "int"]]}', "is not a header"),
        ('{"value": "x", "partition": 2}', "t has no partition 2"),
    ],
)
def test_a_wrong_line_is_named_and_those_before_it_are_kept(pystreams, topic, line, said):
    failed = pystreams(
        "produce", topic, "--json", stdin=f'{{"value": "good"}}\n{line}\n{{"value": "behind"}}\n'
    )
    assert failed.code in (1, 2)
    assert said in failed.err
    assert "line 2" in failed.err
    assert "1 record written to t before the error" in failed.err
    assert len(pystreams("consume", topic).lines) == 1


def test_a_topic_with_fewer_partitions_is_written_by_key(pystreams, topic):
    lines = '{"key": "a", "value": "x", "partition": 5}\n'
    assert "--by-key" in pystreams("produce", topic, "--json", stdin=lines).err
    assert pystreams("produce", topic, "--json", "--by-key", stdin=lines).code == 0
    assert pystreams("produce", topic, "--json", "--partition", "1", stdin=lines).code == 0
    assert len(pystreams("consume", topic, "--partition", "1").lines) >= 1

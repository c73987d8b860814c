"""How text in CSV and JSON becomes bytes, times and headers; what cannot be read is told with its file."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from pystreams.backfill.sources import CsvSource, JsonSource, Source
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import Row, read

PARTITION = TopicPartition("lines", 0)


def all_of(source: Source) -> list[Row]:
    return read(
        source, PARTITION, source.beginnings([PARTITION])[PARTITION], source.ends([PARTITION])[PARTITION]
    )


def test_csv_distinguishes_null_from_the_empty_text(tmp_path: Path) -> None:
    file = tmp_path / "lines.csv"
    file.write_text(
        'topic,partition,offset,timestamp,key,value\nlines,0,7,5,,"to be,\nor not"\nlines,0,8,6,"",\n'
    )
    assert all_of(CsvSource(str(file))) == [(7, 5, None, b"to be,\nor not", ()), (8, 6, b"", None, ())]


def test_csv_with_the_mark_of_windows(tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_bytes(
        b'\xef\xbb\xbf"topic",partition,offset,timestamp,value\r\nlines,0,0,5,a\r\n'
    )
    assert all_of(CsvSource(str(tmp_path))) == [(0, 5, None, b"a", ())]


HEADER = "topic,partition,offset,timestamp,key,value\n"


@pytest.mark.parametrize("empty", ["", HEADER, HEADER.strip(), HEADER + "\n", "\n"])
def test_csv_without_a_record_holds_none(empty: str, tmp_path: Path) -> None:
    """Spark writes such files for partitions without rows."""
    (tmp_path / "a.csv").write_text(empty)
    assert dict(CsvSource(str(tmp_path)).partitions()) == {}
    (tmp_path / "b.csv").write_text(HEADER + "lines,0,0,5,a,b\n")
    assert all_of(CsvSource(str(tmp_path))) == [(0, 5, b"a", b"b", ())]


def test_csv_may_begin_with_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"\n\r\n{HEADER}lines,0,0,5,a,b\n")
    assert all_of(CsvSource(str(tmp_path))) == [(0, 5, b"a", b"b", ())]


def test_json_with_the_mark_of_windows(tmp_path: Path) -> None:
    line = '{"topic": "lines", "partition": 0, "offset": 0, "timestamp": 5, "value": "a"}'
    (tmp_path / "lines.json").write_bytes(b"\xef\xbb\xbf" + line.encode())
    assert all_of(JsonSource(str(tmp_path))) == [(0, 5, None, b"a", ())]


def test_no_file_is_passed_over_for_its_packing_or_its_case(tmp_path: Path) -> None:
    packings = {"a.json": bytes, "b.JSON": bytes, "c.ndjson.gz": gzip.compress, "d.jsonl.bz2": bz2.compress}
    for offset, (name, pack) in enumerate(packings.items()):
        line = f'{{"topic": "lines", "partition": 0, "offset": {offset}, "timestamp": 5}}'
        (tmp_path / name).write_bytes(pack(line.encode()))
    assert [row[0] for row in all_of(JsonSource(str(tmp_path)))] == [0, 1, 2, 3]


def test_json_as_consume_prints_it(tmp_path: Path) -> None:
    """It prints no topic: that is given with the source. A value that is not text stands for itself."""
    text = (
        '{"partition": 0, "offset": 0, "timestamp": 5, "key": "be", "value": 12, "headers": [["h", "x"], ["n", null]]}'
        "\n"
        '{"partition": 0, "offset": 1, "timestamp": 6, "key": null, "value": {"a":  [1.0, "é"]}}\n\n'
        '{"partition": 0, "offset": 2, "timestamp": 7, "key": "\\u00e9", "value": "caf\\u00e9"}'
    )
    with gzip.open(tmp_path / "lines.jsonl.gz", "wt") as file:
        file.write(text)
    assert all_of(JsonSource(str(tmp_path), topic="lines")) == [
        (0, 5, b"be", b"12", (("h", b"x"), ("n", None))),
        (1, 6, None, '{"a":  [1.0, "é"]}'.encode(), ()),
        (2, 7, "é".encode(), "café".encode(), ()),
    ]
    found = all_of(JsonSource(str(tmp_path), topic="lines", key_encoding="json", value_encoding="json"))
    assert found[2][2:4] == (b'"\\u00e9"', b'"caf\\u00e9"')


def test_numbers_become_the_bytes_of_their_serde(tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text("topic,partition,offset,timestamp,key,value\nlines,0,0,5,258,1.5\n")
    [row] = all_of(CsvSource(str(tmp_path), key_encoding="int", value_encoding="float"))
    assert row[2:4] == (bytes.fromhex("0000000000000102"), bytes.fromhex("3ff8000000000000"))
    (tmp_path / "lines.csv").write_text("topic,partition,offset,timestamp,key,value\nlines,0,0,5,0aff,\n")
    [row] = all_of(CsvSource(str(tmp_path), key_encoding="hex"))
    assert row[2:4] == (b"\x0a\xff", None)


@pytest.mark.parametrize(
    "written",
    [
        "1500",
        '"1970-01-01T00:00:01.500999Z"',
        '"1970-01-01 00:00:01.500000001"',
        '"1970-01-01T00:00:01.500Z"',
        '"1970-01-01 00:00:01.5"',
        '"1970-01-01T02:00:01.500+02:00"',
    ],
)
def test_times_are_milliseconds_or_moments(written: str, tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text(
        f'{{"topic": "lines", "partition": 0, "offset": 0, "timestamp": {written}, "value": "a"}}'
    )
    assert all_of(JsonSource(str(tmp_path))) == [(0, 1500, None, b"a", ())]
    text = written.strip('"')
    (tmp_path / "lines.csv").write_text(f"topic,partition,offset,timestamp,value\nlines,0,0,{text},a\n")
    assert all_of(CsvSource(str(tmp_path))) == [(0, 1500, None, b"a", ())]


@pytest.mark.parametrize(
    "line, told",
    [
        ('{"topic": "lines", "partition": 0, "offset": 0', "not a record in JSON"),
        ('{"topic": "lines", "partition": "one", "offset": 0, "timestamp": 1}', "not a record in JSON"),
        ('{"topic": "lines", "partition": 0, "timestamp": 1}', "no column offset"),
        (
            f'{{"topic": "lines", "partition": 0, "offset": {1 << 64}, "timestamp": 1}}',
            "not a record in JSON",
        ),
        ('{"topic": "lines", "partition": -1, "offset": 0, "timestamp": 1}', "records of partition -1"),
        ('{"topic": "lines", "partition": 0, "offset": 0, "timestamp": "soon"}', "column timestamp"),
        ('{"topic": "lines", "partition": 0, "offset": 0, "timestamp": 0, "headers": [["a"]]}', "headers"),
        (
            '{"topic": "lines", "partition": 0, "offset": 0, "timestamp": 0, "value": "?!"}',
            "cannot be read as base64",
        ),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_file(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text(line)
    with pytest.raises(ConfigError, match=told) as raised:
        all_of(JsonSource(str(tmp_path), value_encoding="base64"))
    assert "lines.json" in raised.value.where


def test_text_that_is_no_utf8_is_reported_with_its_file(tmp_path: Path) -> None:
    line = b'{"topic": "lines", "partition": 0, "offset": 0, "timestamp": 5, "value": "\xff"}'
    (tmp_path / "lines.json").write_bytes(line)
    for encoding in ("text", "base64"):
        with pytest.raises(ConfigError, match="not UTF-8") as raised:
            all_of(JsonSource(str(tmp_path), value_encoding=encoding))
        assert "lines.json" in raised.value.where


@pytest.mark.parametrize(
    "names, told",
    [
        ("topic,partition,offset,timestamp,value,value", "a column twice"),
        ("to,from,at,when,what,why", "does not have any column of a record"),
        ("lines,0,0,5,a,b", "does not have any column of a record"),
        ("a,b,c,d,key,value", "no column topic"),
        ("note,partition,offset,timestamp,key,value", "no column topic"),
    ],
)
def test_wrong_names_of_columns_are_reported_with_their_file(names: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.csv"
    file.write_text(names if names == "lines,0,0,5,a,b" else f"{names}\nlines,0,0,5,a,b\n")
    for path in (tmp_path, file):
        with pytest.raises(ConfigError, match=told) as raised:
            all_of(CsvSource(str(path)))
        assert raised.value.where.endswith("lines.csv")


@pytest.mark.parametrize("line", ["lines,0,0", "lines,x,0,0,a"])
def test_csv_that_is_none_is_reported_with_its_file(line: str, tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text(f"topic,partition,offset,timestamp,value\n{line}\n")
    with pytest.raises(ConfigError, match="not CSV with these columns") as raised:
        all_of(CsvSource(str(tmp_path)))
    assert "lines.csv" in raised.value.where


def test_an_encoding_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="no encoding 'utf8'"):
        CsvSource("folder", value_encoding="utf8")

"""Lines go in as records, records come out as lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams import open_log
from pystreams.log.batches import BatchWriter
from tests.live.support import TIMEOUT_S, eventually


@pytest.fixture
def topic(pystreams):
    pystreams("topics", "create", "t")
    return "t"


def test_lines_come_out_as_they_went_in(pystreams, topic):
    written = pystreams("produce", topic, stdin="to be\nor not\n")
    assert written.code == 0
    assert "Wrote 2 records to t." in written.err
    consumed = pystreams("consume", topic)
    assert [line.split("\t")[1:] for line in consumed.lines] == [["null", "to be"], ["null", "or not"]]


def test_keys_stand_before_the_separator(pystreams, topic):
    pystreams("produce", topic, "-k", ":", stdin="a:1:2\n")
    assert pystreams("consume", topic).lines[0].split("\t")[1:] == ["a", "1:2"]


@pytest.mark.parametrize(
    "format_,text,shown",
    [
        ("int", "-5", "-5"),
        ("int32", "-5", "-5"),
        ("int16", "-5", "-5"),
        ("float", "0.5", "0.5"),
        ("float32", "0.5", "0.5"),
        ("bool", "true", "true"),
        ("uuid", "12345678-1234-5678-1234-567812345678", "12345678-1234-5678-1234-567812345678"),
        ("json", '{"a": [1]}', '{"a": [1]}'),
        ("hex", "00ff", "00ff"),
        ("str", "ä", "ä"),
    ],
)
def test_formats_read_what_they_show(pystreams, topic, format_, text, shown):
    assert pystreams("produce", topic, "--value-type", format_, stdin=text + "\n").code == 0
    assert pystreams("consume", topic, "--value-type", format_).lines[0].split("\t")[2] == shown


def test_counts_are_recognised_as_numbers(pystreams, topic):
    pystreams("produce", topic, "--value-type", "int", stdin="7\n")
    assert pystreams("consume", topic).lines[0].endswith("\t7")


def test_windowed_keys_are_recognised(pystreams, topic):
    key = b"AA".hex() + (1_356_998_400_000).to_bytes(8, "big").hex()
    pystreams("produce", topic, "-k", "=", "--key-type", "hex", stdin=f"{key}=x\n")
    assert "AA@2013-01-01T00:00:00Z" in pystreams("consume", topic).out


def test_keys_of_sessions_are_recognised_and_written_again(pystreams, topic):
    start, end = 1_356_998_400_000, 1_356_998_460_000
    key = b"AA".hex() + end.to_bytes(8, "big").hex() + start.to_bytes(8, "big").hex()
    pystreams("produce", topic, "-k", "=", "--key-type", "hex", stdin=f"{key}=x\n")
    shown = "AA@2013-01-01T00:00:00Z/2013-01-01T00:01:00Z"
    assert pystreams("consume", topic).lines[0].split("\t")[1] == shown
    assert pystreams("consume", topic, "--key-type", "session").lines[0].split("\t")[1] == shown
    pystreams("produce", topic, "-k", "=", "--key-type", "session", stdin=f"{shown}=y\n")
    keys = [line.split("\t")[1] for line in pystreams("consume", topic, "--key-type", "hex").lines]
    assert keys == [key, key]


def test_a_line_of_the_wrong_type_is_named_and_the_lines_before_it_are_kept(pystreams, topic):
    failed = pystreams("produce", topic, "--value-type", "int", stdin="1\n2\nthree\n4\n")
    assert failed.code == 1
    assert "'three' cannot be read as int" in failed.err
    assert "line 3" in failed.err
    assert len(pystreams("consume", topic).lines) == 2


def test_a_line_without_the_separator_is_named(pystreams, topic):
    failed = pystreams("produce", topic, "-k", "=", stdin="a=1\nb\n")
    assert failed.code == 1
    assert "line 2" in failed.err


def test_an_unknown_format_is_answered_with_the_nearest(pystreams, topic):
    failed = pystreams("produce", topic, "--value-type", "jsn", stdin="1\n")
    assert failed.code == 2
    assert "did you mean json?" in failed.err


def test_records_get_the_time_that_is_said(pystreams):
    pystreams("topics", "create", "old", "-c", "retention.ms=-1")
    pystreams("produce", "old", "--timestamp", "2013-01-01T10:00:00Z", stdin="x\n")
    assert pystreams("consume", "old").lines == ["2013-01-01T10:00:00Z\tnull\tx"]
    assert pystreams("produce", "old", "--timestamp", "yesterday", stdin="x\n").code == 2


def test_writing_records_that_retention_deletes_is_warned_about(pystreams, topic):
    written = pystreams("produce", topic, "--timestamp", "2013-01-01", stdin="x\n")
    assert "retention.ms=-1" in written.err


def test_seconds_and_microseconds_are_recognised_when_they_are_written(pystreams, topic):
    for timestamp, remedy in (
        (1_700_000_000, "seconds: multiply by 1000"),
        (1_700_000_000_000_000, "microseconds: divide by 1000"),
    ):
        written = pystreams("produce", topic, "--timestamp", str(timestamp), stdin="x\n")
        assert f"timestamp {timestamp}: most likely {remedy}" in written.err
        assert "retention.ms=-1" not in written.err


def test_a_file_is_read_line_by_line(pystreams, topic):
    Path("lines.txt").write_text("a\nb\n", encoding="utf-8")
    assert pystreams("produce", topic, "--file", "lines.txt").code == 0
    assert len(pystreams("consume", topic).lines) == 2
    assert pystreams("produce", topic, "--file", "nowhere.txt").code == 2


def test_json_output_has_everything_of_a_record(pystreams, topic):
    pystreams("produce", topic, "-k", "=", "--timestamp", "1700000000000", stdin='a={"n": 1}\n')
    record = json.loads(pystreams("consume", topic, "--json").out)
    assert record == {
        "partition": 0,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "key": "a",
        "value": {"n": 1},
    }


@pytest.mark.parametrize(
    "start,values",
    [
        ("earliest", ["a", "b", "c"]),
        ("latest", []),
        ("-2", ["b", "c"]),
        ("-9", ["a", "b", "c"]),
        ("2001-01-02", ["b", "c"]),
        ("2009-01-01", []),
    ],
)
def test_consuming_begins_where_it_is_said(pystreams, start, values):
    pystreams("topics", "create", "days", "-c", "retention.ms=-1")
    for day, value in enumerate("abc", 1):
        pystreams("produce", "days", "--timestamp", f"2001-01-0{day}", stdin=value + "\n")
    consumed = pystreams("consume", "days", "--from", start)
    assert consumed.code == 0
    assert [line.split("\t")[2] for line in consumed.lines] == values


def test_a_place_that_is_none_is_refused(pystreams, topic):
    refused = pystreams("consume", topic, "--from", "erliest")
    assert refused.code == 2
    assert "did you mean earliest" in refused.err


def test_consuming_stops_after_max(pystreams, topic):
    pystreams("produce", topic, stdin="a\nb\nc\n")
    assert len(pystreams("consume", topic, "--max", "2").lines) == 2


def test_only_one_partition_is_shown(pystreams):
    pystreams("topics", "create", "two", "-p", "2")
    pystreams("produce", "two", "--partition", "1", stdin="x\n")
    assert pystreams("consume", "two", "--partition", "0").out == ""
    assert len(pystreams("consume", "two", "--partition", "1").lines) == 1
    assert pystreams("consume", "two", "--partition", "2").code == 2
    assert pystreams("produce", "two", "--partition", "2", stdin="x\n").code == 2


def test_bytes_of_another_format_are_shown_with_a_mark(pystreams, topic):
    pystreams("produce", topic, stdin="abc\n")
    assert "<not int: 0x616263>" in pystreams("consume", topic, "--value-type", "int").out


def test_an_empty_topic_says_that_it_is_empty(pystreams, topic):
    consumed = pystreams("consume", topic)
    assert consumed.code == 0
    assert "t is empty" in consumed.err


def test_lines_of_a_slow_pipe_are_there_soon_and_an_interrupt_says_how_many(folder, topic):
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "produce", topic],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        running.stdin.write("a\nb\n")
        running.stdin.flush()
        with open_log() as log:
            eventually(lambda: log.describe_topic(topic).records == 2, "both lines are there")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=TIMEOUT_S)
    assert "Interrupted: wrote 2 records to t, up to line 2." in said
    assert "Traceback" not in said
    assert running.returncode == 130


def test_an_interrupt_names_the_last_line_that_was_sent(pystreams, topic, monkeypatch):
    send = BatchWriter.send

    def interrupted(self, topic, partition, key, value, timestamp, headers):
        if value == b"c":
            raise KeyboardInterrupt
        send(self, topic, partition, key, value, timestamp, headers)

    monkeypatch.setattr(BatchWriter, "send", interrupted)
    stopped = pystreams("produce", topic, stdin="a\nb\nc\nd\n")
    assert stopped.code == 130
    assert "Interrupted: wrote 2 records to t, up to line 2." in stopped.err

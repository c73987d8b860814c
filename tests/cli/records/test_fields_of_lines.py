"""Keys and times are taken from fields of JSON and from columns of CSV."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def topic(pystreams):
    pystreams("topics", "create", "t", "-c", "retention.ms=-1")
    return "t"


def shown(pystreams):
    return [tuple(line.split("\t")) for line in pystreams("consume", "t", "--value-type", "str").lines]


def test_key_and_time_are_read_from_the_fields_of_a_line_which_stays_as_it_is(pystreams, topic):
    lines = '{"id": "a", "at": 1700000000000, "n":  1}\n{"id": 1.50, "at": "2013-01-01T10:00:00Z"}\n'
    written = pystreams(
        "produce", topic, "--key-field", "id", "--timestamp-field", "at", "--value-type", "json", stdin=lines
    )
    assert written.code == 0, written.err
    assert shown(pystreams) == [
        ("2023-11-14T22:13:20Z", "a", '{"id": "a", "at": 1700000000000, "n":  1}'),
        ("2013-01-01T10:00:00Z", "1.50", '{"id": 1.50, "at": "2013-01-01T10:00:00Z"}'),
    ]


def test_a_dot_leads_into_an_object_unless_the_name_has_one(pystreams, topic):
    lines = '{"who": {"id": 7}}\n{"who.id": 8, "who": {"id": 7}}\n'
    pystreams("produce", topic, "--key-field", "who.id", "--key-type", "int", stdin=lines)
    assert [key for _, key, _ in shown(pystreams)] == ["7", "8"]


def test_a_null_is_no_key_and_no_time(pystreams, topic):
    line = '{"id": null, "at": null}\n'
    options = ("--key-field", "id", "--timestamp-field", "at", "--timestamp", "2013-01-01")
    pystreams("produce", topic, *options, stdin=line)
    assert shown(pystreams) == [("2013-01-01T00:00:00Z", "null", line.strip())]


@pytest.mark.parametrize(
    "text,time",
    [
        ("1700000000000", "2023-11-14T22:13:20Z"),
        ("1.7e12", "2023-11-14T22:13:20Z"),
        ('"1700000000000"', "2023-11-14T22:13:20Z"),
        ('"2023-11-14T23:13:20+01:00"', "2023-11-14T22:13:20Z"),
        ('"2023-11-14"', "2023-11-14T00:00:00Z"),
    ],
)
def test_times_are_milliseconds_or_iso_8601(pystreams, topic, text, time):
    pystreams("produce", topic, "--timestamp-field", "at", stdin=f'{{"at": {text}}}\n')
    assert shown(pystreams)[0][0] == time


@pytest.mark.parametrize(
    "line,said",
    [
        ('{"ta": 1}', "There is no field at"),
        ('{"at": true}', "'true' is not a time"),
        ('{"at": "noon"}', "'noon' is not a time"),
        ('{"at": -1}', "'-1' is not a time"),
        ('{"at": 1e99}', "cannot have the timestamp"),
        ("[1]", "'[1]' cannot be read as a JSON object"),
        ("at=1", "'at=1' cannot be read as a JSON object"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_content(pystreams, topic, line, said):
    failed = pystreams("produce", topic, "--timestamp-field", "at", stdin=f'{{"at": 1}}\n{line}\n')
    assert failed.code == 1
    assert said in failed.err
    assert "line 2" in failed.err
    assert "1 record written to t before the error" in failed.err


def test_rows_become_objects_with_the_names_of_the_first_line(pystreams, topic):
    rows = 'id,city,n,zip,at\na,"New ""York"", NY",1.50,02139,2013-01-01\nb,,-3,10001,2013-01-02\n'
    options = ("--key-field", "id", "--timestamp-field", "at", "--text-column", "zip")
    assert pystreams("produce", topic, "--csv", *options, stdin=rows).code == 0
    assert shown(pystreams) == [
        (
            "2013-01-01T00:00:00Z",
            "a",
            r'{"id":"a","city":"New \"York\", NY","n":1.50,"zip":"02139","at":"2013-01-01"}',
        ),
        ("2013-01-02T00:00:00Z", "b", '{"id":"b","city":null,"n":-3,"zip":"10001","at":"2013-01-02"}'),
    ]


def test_a_file_of_a_spreadsheet_is_read(pystreams, topic):
    """With a byte-order mark, carriage returns, and a line break within quotes."""
    Path("rows.csv").write_bytes('\ufeffid,text\r\n1,"a\r\nb"\r\n\r\n2,c\r\n'.encode())
    assert pystreams("produce", topic, "--csv", "-f", "rows.csv", "--key-field", "id").code == 0
    assert [(key, value) for _, key, value in shown(pystreams)] == [
        ("1", r'{"id":1,"text":"a\r\nb"}'),
        ("2", '{"id":2,"text":"c"}'),
    ]


@pytest.mark.parametrize(
    "rows,options,said",
    [
        ("a,b\n1,2\n1\n", (), ("line 3", "1 cells, but the first line has 2")),
        ("a,a\n1,2\n", (), ("line 1", "'a' is empty or occurs twice")),
        ('a,b\n1,"2\n', (), ("line 2", "cannot be read as CSV")),
        ("a,b\n1,2\n", ("--text-column", "c"), ("There is no column c", "a, b")),
        ("id,b\n1,2\n", ("--key-field", "idd"), ("There is no field idd", "did you mean id?")),
        ('a,b\n"x\ny",2\n1\n', (), ("line 4",)),
    ],
)
def test_rows_that_are_wrong_are_named(pystreams, topic, rows, options, said):
    failed = pystreams("produce", topic, "--csv", *options, stdin=rows)
    assert failed.code in (1, 2)
    assert all(text in failed.err for text in said), failed.err


@pytest.mark.parametrize(
    "options,said",
    [
        (("--json", "--csv"), "--json and --csv contradict each other"),
        (("--json", "--key-field", "a"), "--json and --key-field contradict each other"),
        (("--csv", "--key-separator", ","), "--key-separator and --csv contradict each other"),
        (("--by-key",), "--by-key is for --json"),
        (("--text-column", "a"), "--text-column is for --csv"),
    ],
)
def test_options_that_do_not_go_together_are_refused(pystreams, topic, options, said):
    refused = pystreams("produce", topic, *options, stdin="x\n")
    assert refused.code == 2
    assert said in refused.err


def test_bytes_that_are_not_text_are_reported(pystreams, topic):
    Path("bytes").write_bytes(b"good\n\xff\xfe\n")
    failed = pystreams("produce", topic, "-f", "bytes")
    assert failed.code == 1
    assert "bytes is not text" in failed.err
    assert "Traceback" not in failed.err


def test_a_long_line_is_cut_in_the_message(pystreams, topic):
    failed = pystreams("produce", topic, "--value-type", "int", stdin="x" * 5000 + "\n")
    assert "…" in failed.err
    assert len(failed.err) < 1000


def test_records_that_retention_deletes_are_warned_about_once(pystreams):
    pystreams("topics", "create", "week")
    lines = '{"at": 1000000000000}\n{"at": 1000000000001}\n'
    written = pystreams("produce", "week", "--timestamp-field", "at", stdin=lines)
    assert written.err.count("retention.ms=-1") == 1


def test_a_pipe_is_read_as_a_file_is(pystreams, topic):
    piped = b'\xef\xbb\xbfid,note\r\n1,"a\r\nb"\r\n'
    written = subprocess.run(
        [sys.executable, "-m", "pystreams", "produce", topic, "--csv", "--key-field", "id"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        input=piped,
        capture_output=True,
        check=False,
    )
    assert written.returncode == 0, written.stderr
    from_pipe = shown(pystreams)
    Path("rows.csv").write_bytes(piped)
    pystreams("produce", topic, "--csv", "--key-field", "id", "--file", "rows.csv")
    assert [line[1:] for line in from_pipe] == [("1", '{"id":1,"note":"a\\r\\nb"}')]
    assert [line[1:] for line in shown(pystreams)] == 2 * [line[1:] for line in from_pipe]


def test_a_cell_may_be_as_large_as_a_record(pystreams, topic):
    written = pystreams("produce", topic, "--csv", stdin=f"text\n{'x' * 200_000}\n")
    assert written.code == 0, written.err
    assert shown(pystreams)[0][2] == f'{{"text":"{"x" * 200_000}"}}'

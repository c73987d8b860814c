"""A backfill tells what it would do, does it, hands over, and explains itself when it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams.cli.backfill_inputs import SourceText, parse_source, parse_until
from pystreams.cli.backfill_outputs import Emit, HandOver, parse_emit, parse_hand_over
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition

WORDCOUNT = """
from pystreams import App

app = App("{id}")
app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word).count(
    name="counts"
).to_stream().to("word-counts")
"""

HERE = ("--master", "none")


@pytest.fixture
def wordcount(folder, pystreams):
    """The program, its topics, and some history in them."""
    name = f"wordcount_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(WORDCOUNT.format(id="wordcount"), encoding="utf-8")
    pystreams("topics", "create", "lines", "word-counts", "-p", "2")
    pystreams("produce", "lines", stdin="to be or not to be\nthat is the question\n")
    return name


def counts(pystreams) -> dict[str, str]:
    rows = [line.split("\t") for line in pystreams("consume", "word-counts").lines]
    return {key: value for _, key, value in rows}


def rows(outcome, table: str) -> list[list[str]]:
    """The rows of one of the tables that were printed."""
    return [cells for line in outcome.lines if (cells := line.split("\t"))[0] == table]


def test_a_dry_run_prints_the_plan_and_leaves_nothing(folder, pystreams, wordcount):
    before = pystreams("topics", "list", "--internal").out
    shown = pystreams("backfill", wordcount, "--dry-run", "--hand-over", "embedded", *HERE)
    assert shown.code == 0
    repartition = "wordcount-counts-repartition"
    assert rows(shown, "slice") == [
        ["slice", "1 of 2", "2", "lines", "2", "-", repartition],
        ["slice", "2 of 2", "2", repartition, "what slice 1 gives", "counts", "word-counts"],
    ]
    assert sum(int(row[4]) for row in rows(shown, "input")) == 2
    assert [row[1] for row in rows(shown, "write")][1:] == [
        "store counts, changelog wordcount-counts-changelog",
        "offsets of group wordcount",
        "record of the hand-over, topic wordcount-backfill-manifest",
    ]
    assert rows(shown, "note")[0][1] == "one legal result"
    assert pystreams("topics", "list", "--internal").out == before
    assert not (folder / ".pystreams" / "backfill").exists()


def test_history_is_computed_reported_and_handed_over(pystreams, wordcount):
    done = pystreams("backfill", wordcount, "--hand-over", "embedded", *HERE)
    assert done.code == 0, done.err
    assert rows(done, "slice") == [
        ["slice", "1 of 2", "lines", "2", "0"],
        ["slice", "2 of 2", "wordcount-counts-repartition", "10", "0"],
    ]
    assert [row[1:3] for row in rows(done, "store")] == [["counts", "8"]]
    assert "Handed over to embedded log" in done.err
    pystreams("produce", "lines", stdin="to live\n")
    assert pystreams("run", wordcount, "--until-caught-up").code == 0
    assert counts(pystreams) == {"to": "3", "live": "1"}


def test_progress_has_a_line_for_each_slice(pystreams, wordcount):
    told = pystreams("backfill", wordcount, *HERE).err.splitlines()
    assert any(line.startswith("slice 1 of 2  lines  2 records") for line in told)
    assert any(line.startswith("slice 2 of 2  ") and "10 records" in line for line in told)


def test_what_is_staged_is_handed_over_later_without_computing_it_again(pystreams, wordcount):
    computed = pystreams("backfill", wordcount, *HERE)
    assert "--resume --hand-over" in computed.err
    handed = pystreams("backfill", wordcount, "--resume", "--hand-over", "embedded", *HERE)
    assert handed.code == 0, handed.err
    assert "slice 1 of 2" not in handed.err
    assert rows(handed, "store") == rows(computed, "store")
    again = pystreams("backfill", wordcount, "--resume", "--hand-over", "embedded", *HERE)
    assert again.code == 0
    assert "nothing was changed" in again.err


def test_a_second_backfill_does_not_mix_with_the_first(pystreams, wordcount):
    pystreams("backfill", wordcount, *HERE)
    refused = pystreams("backfill", wordcount, *HERE)
    assert refused.code == 1
    assert "--resume" in refused.err
    assert "--overwrite" in refused.err
    assert "Traceback" not in refused.err
    pystreams("produce", "lines", stdin="once more\n")
    anew = pystreams("backfill", wordcount, "--overwrite", *HERE)
    assert anew.code == 0
    assert rows(anew, "slice")[0][3] == "3"


def test_emitted_records_and_live_ones_follow_each_other(pystreams, wordcount):
    done = pystreams("backfill", wordcount, "--emit", "topic", "--hand-over", "embedded", *HERE)
    assert done.code == 0, done.err
    assert rows(done, "emitted") == [["emitted", "word-counts", "8"]]
    pystreams("produce", "lines", stdin="to live\n")
    pystreams("run", wordcount, "--until-caught-up")
    found = counts(pystreams)
    assert (found["to"], found["be"], found["live"]) == ("3", "2", "1")


def test_records_are_emitted_to_files(folder, pystreams, wordcount):
    import pyarrow.parquet as pq

    done = pystreams("backfill", wordcount, "--emit", "parquet:results", *HERE)
    assert done.code == 0, done.err
    assert pq.read_table(folder / "results").num_rows == 8


def test_a_snapshot_is_handed_over_later(folder, pystreams, wordcount):
    written = pystreams("backfill", wordcount, "--hand-over", "snapshot:tables", *HERE)
    assert written.code == 0, written.err
    assert "--from-snapshot tables" in written.err
    handed = pystreams("backfill", wordcount, "--from-snapshot", "tables", "--hand-over", "embedded")
    assert handed.code == 0, handed.err
    assert rows(handed, "handed over") == [["handed over", "counts", "8", "0", "0"]]
    pystreams("produce", "lines", stdin="to live\n")
    assert pystreams("run", wordcount, "--until-caught-up").code == 0
    assert counts(pystreams) == {"to": "3", "live": "1"}


def test_a_later_backfill_goes_on_from_an_earlier_one(pystreams, wordcount):
    pystreams("backfill", wordcount, "--staging", "monday", *HERE)
    pystreams("produce", "lines", stdin="to be\n")
    done = pystreams("backfill", wordcount, "--previous", "monday", "--staging", "tuesday", *HERE)
    assert done.code == 0, done.err
    assert [row[3] for row in rows(done, "slice")] == ["1", "2"]
    refused = pystreams(
        "backfill", wordcount, "--previous", "monday", "--staging", "./monday", "--overwrite", *HERE
    )
    assert refused.code == 2
    assert "stage the new one elsewhere" in refused.err
    anew = pystreams("backfill", wordcount, "--staging", "from-the-beginning", *HERE)
    assert rows(done, "store") == rows(anew, "store")


def test_history_ends_at_an_event_time_or_at_offsets(pystreams, wordcount):
    pystreams("produce", "lines", "--timestamp", "2013-01-01", stdin="old times\n")
    both = [
        pystreams("backfill", wordcount, "--dry-run", "--until", until, *HERE)
        for until in ("2012-12-31", "lines-0=0,lines-1=0")
    ]
    for shown in both:
        assert shown.code == 0, shown.err
    assert sum(int(row[4]) for row in rows(both[1], "input")) == 0


def test_a_running_application_gets_nothing_handed_over(folder, pystreams, wordcount):
    from pystreams import Streams
    from pystreams.cli.loading import load_application
    from pystreams.clock import SystemClock
    from pystreams.runtime.transitions import ClientState

    streams = Streams(load_application(wordcount), clock=SystemClock())
    streams.start()
    try:
        assert streams.wait_for(lambda: streams.state is ClientState.RUNNING, 30_000)
        refused = pystreams("backfill", wordcount, "--hand-over", "embedded", "--emit", "topic", *HERE)
    finally:
        streams.close()
    assert refused.code == 4
    assert "is running" in refused.err
    assert not (folder / ".pystreams" / "backfill").exists(), "it was refused before anything was computed"


def test_a_function_that_raises_is_named_with_its_line(folder, pystreams):
    (folder / "raising_history.py").write_text(
        "from pystreams import App\n"
        "app = App('raising')\n"
        "def half(text):\n"
        "    return str(int(text) / 2)\n"
        "app.stream('in', value=str).map_values(half).to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="4\nfour\n")
    failed = pystreams("backfill", "raising_history", *HERE)
    assert failed.code == 1
    assert "ValueError" in failed.err
    assert "raising_history.py:4" in failed.err
    assert "in-0 offset 1" in failed.err
    assert "Traceback" not in failed.err


@pytest.mark.parametrize(
    "arguments,code,answer",
    [
        (["--source", "lins=embedded"], 2, "did you mean lines?"),
        (["--source", "lines=parket:here"], 2, "did you mean parquet?"),
        (["--source", "lines=parquet"], 2, "--source lines=parquet:FOLDER"),
        (["--source", "embedded", "--source", "embedded:other.db"], 2, "cannot have two sources"),
        (["--source", "lines=kafka"], 2, "--bootstrap-servers HOST:PORT"),
        (["--source", "lines=parquet:nowhere"], 2, "nowhere"),
        (["--until", "tomorrow"], 2, "write now, a time"),
        (["--until", "lines-0=ten"], 2, "TOPIC-PARTITION=OFFSET"),
        (["--until", "lines-0=1000"], 4, "which the source does not hold"),
        (["--hand-over", "embeded"], 2, "did you mean embedded?"),
        (["--hand-over", "kafka"], 2, "--bootstrap-servers HOST:PORT"),
        (["--approximate", "--hand-over", "embedded"], 2, "--approximate"),
        (["--emit", "parquet"], 2, "--emit parquet:FOLDER"),
        (["--conf", "spark.driver.memory"], 2, "spark.driver.memory=4g"),
        (["--commit-records", "0"], 2, "--commit-records"),
        (["--resume", "--overwrite"], 2, "--resume does not go with --overwrite"),
        (["--from-snapshot", "tables"], 2, "--hand-over kafka or"),
        (["--from-snapshot", "tables", "--hand-over", "embedded"], 1, "tables"),
        (
            ["--from-snapshot", "tables", "--emit", "topic", "--dry-run"],
            2,
            "--from-snapshot does not go with --emit and --dry-run",
        ),
        (
            ["--from-snapshot", "tables", "--source", "embedded"],
            2,
            "--from-snapshot does not go with --source",
        ),
        (["-s", "comit_interval_ms=1"], 2, "commit_interval_ms"),
    ],
)
def test_a_wrong_option_is_explained(pystreams, wordcount, arguments, code, answer):
    refused = pystreams("backfill", wordcount, *arguments, *HERE)
    assert refused.code == code, refused.err
    assert answer in " ".join(refused.err.split())
    assert "Traceback" not in refused.err


def test_a_topology_that_no_history_can_compute_is_refused_by_the_topics_name(folder, pystreams):
    (folder / "circular.py").write_text(
        "from pystreams import App\napp = App('circular')\n"
        "app.stream('in', value=str).to('out')\napp.stream('out', value=str).to('end')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "out", "end")
    refused = pystreams("backfill", "circular", "--dry-run", *HERE)
    assert refused.code == 3
    assert "both writes topic out and reads it" in refused.err


def test_files_without_offsets_are_read_on_request(folder, pystreams, wordcount):
    (folder / "lines.csv").write_text("value,timestamp\nto be or not,5\nto be,6\n", encoding="utf-8")
    source = ("--source", "lines=csv:lines.csv")
    assert pystreams("backfill", wordcount, *source, *HERE).code == 2
    done = pystreams("backfill", wordcount, *source, "--approximate", *HERE)
    assert done.code == 0, done.err
    assert rows(done, "store")[0][2] == "4"
    assert "--hand-over" not in done.err


def test_a_log_that_is_not_there_is_not_made(folder, pystreams):
    (folder / "alone.py").write_text(WORDCOUNT.format(id="alone"), encoding="utf-8")
    refused = pystreams("backfill", "alone", *HERE)
    assert refused.code == 4
    assert "no source for topic lines" in refused.err
    assert "--embedded-log" in refused.err
    assert not (folder / ".pystreams" / "log.db").exists()


@pytest.mark.parametrize("missing", ["pyarrow", "pyspark"])
def test_packages_that_are_missing_are_named(pystreams, wordcount, monkeypatch, missing):
    from pystreams.cli import backfill_setup

    found = backfill_setup.find_spec
    monkeypatch.setattr(backfill_setup, "find_spec", lambda name: None if name == missing else found(name))
    refused = pystreams("backfill", wordcount, "--master", "local[1]")
    assert refused.code == 2
    assert f"A backfill needs {missing}" in refused.err
    assert "pip install 'pystreams[backfill]'" in refused.err


def test_without_java_the_way_without_spark_is_told(pystreams, wordcount, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused = pystreams("backfill", wordcount)
    assert refused.code == 2
    assert "--master none" in refused.err


def test_arrow_and_spark_are_imported_by_nobody_who_does_not_backfill():
    program = """
import sys, pystreams, pystreams.cli.main, pystreams.backfill
print([name for name in ("pyarrow", "pyspark", "pandas", "numpy") if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"


def test_ctrl_c_keeps_what_is_staged(folder, pystreams, wordcount):
    program = WORDCOUNT.format(id="wordcount").replace("str.split", "stuck")
    stuck = "import threading\n\ndef stuck(line):\n    threading.Event().wait()\n"
    (folder / f"{wordcount}.py").write_text(stuck + program, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "backfill", wordcount, *HERE],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("slice 1 of 2"):
                break
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert running.returncode == 130
    assert "--resume" in rest
    assert "Traceback" not in rest


@pytest.mark.parametrize(
    "text,meant",
    [
        ("orders=parquet:/archive", SourceText("orders", "parquet", "/archive")),
        ("parquet:/archive/topic=orders", SourceText(None, "parquet", "/archive/topic=orders")),
        ("a.b-c=json:s3a://bucket/x=1", SourceText("a.b-c", "json", "s3a://bucket/x=1")),
        ("kafka:one:9092,two:9092", SourceText(None, "kafka", "one:9092,two:9092")),
        ("embedded", SourceText(None, "embedded", "")),
    ],
)
def test_a_source_is_a_topic_a_kind_and_a_place(text, meant):
    assert parse_source(text) == meant


def test_until_is_now_a_time_or_offsets():
    assert parse_until("now") is None
    assert parse_until("1970-01-02") == 86_400_000
    assert parse_until("a-b-0=12, a-b-1=3") == {TopicPartition("a-b", 0): 12, TopicPartition("a-b", 1): 3}


def test_outputs_are_named_with_their_places():
    assert parse_hand_over("snapshot:/tables") == HandOver("snapshot", "/tables")
    assert HandOver("snapshot").snapshot("staging/") == "staging/snapshot"
    assert parse_emit("parquet:s3a://bucket/results") == Emit("parquet", "s3a://bucket/results")
    for wrong in ("kafka:somewhere", "none:x"):
        with pytest.raises(ConfigError):
            parse_hand_over(wrong)

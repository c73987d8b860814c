"""A backfill tells what it would do, does it, hands over, and explains itself when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.backfill.backfill_kit import HERE, wordcount
from tests.cli.wordcount_kit import WORDCOUNT, counts

__all__ = ["wordcount"]


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
        ["slice", "2 of 2", "2", repartition, "result of slice 1", "counts", "word-counts"],
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
        ["slice", "2 of 2", "wordcount-counts-repartition", "8", "0"],
    ]
    assert [row[1:3] for row in rows(done, "store")] == [["counts", "8"]]
    assert "Handed over to embedded log" in done.err
    pystreams("produce", "lines", stdin="to live\n")
    assert pystreams("run", wordcount, "--until-caught-up").code == 0
    assert counts(pystreams) == {"to": "3", "live": "1"}


def test_progress_has_a_line_for_each_slice(pystreams, wordcount):
    told = pystreams("backfill", wordcount, *HERE).err.splitlines()
    assert any(line.startswith("slice 1 of 2  lines  2 records") for line in told)
    assert any(line.startswith("slice 2 of 2  ") and "8 records" in line for line in told)


def test_the_report_says_how_late_records_were_and_the_numbers_go_on_with_the_application(folder, pystreams):
    (folder / "visits_by_minute.py").write_text(
        "from pystreams import App, TimeWindows\n"
        "app = App('visits', window_changelog_retention_ms=-1)\n"
        "minutes = app.stream('visits', key=str, value=str).group_by_key().windowed_by(TimeWindows.tumbling(60_000))\n"
        "minutes.count(name='counts', step='by-minute')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "visits", "--config", "retention.ms=-1")
    visit = ("produce", "visits", "-k", "=", "--timestamp")
    for time in ("12:00:00", "12:02:30", "12:01:50", "12:00:59"):
        pystreams(*visit, f"2026-03-01T{time}Z", stdin="ann=/\n")
    done = pystreams("backfill", "visits_by_minute", "--hand-over", "embedded", *HERE)
    assert rows(done, "slice") == [["slice", "1 of 1", "visits", "4", "2"]]
    assert (
        "Left out: 2 dropped; too late for step by-minute (store counts): 2 of 4 records (50 %), up to 1 min 31 s "
        "late; a grace of at least 1 min 31 s would have kept them.\n"
        "Records are dropped if they are too late for a window, or without a required key or value. "
        "-s dead_letter_dropped_records=true writes them to the dead-letter topic.\n"
    ) in done.err
    shown = ["by-minute", "counts", "0 ms", "2", "1 min 31 s", "1 min 31 s"]
    assert pystreams("describe", "visits_by_minute", "--late").lines == ["\t".join(shown)]
    pystreams(*visit, "2026-03-01T12:00:30Z", stdin="ann=/\n")
    assert pystreams("run", "visits_by_minute", "--until-caught-up").code == 0
    shown[3:5] = ["3", "2 min"]
    assert pystreams("describe", "visits_by_minute", "--late").lines == ["\t".join(shown)]


def test_a_join_in_which_none_of_ten_records_or_more_finds_anything_is_reported(folder, pystreams):
    (folder / "priced_orders.py").write_text(
        "from pystreams import App\n"
        "app = App('priced')\n"
        "prices = app.table('prices', key=str, value=int)\n"
        "orders = app.stream('orders', key=str, value=int)\n"
        "orders.join(prices, lambda order, price: order * price, value=int, step='priced').to('sums')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "orders", "prices", "sums")
    order = ("produce", "orders", "-k", "=", "--value-type", "int")
    pystreams(*order, stdin="apple=1\n" * 9)
    few = pystreams("backfill", "priced_orders", "--json", *HERE)
    assert json.loads(few.out)["joins_in_vain"] == []
    pystreams(*order, stdin="apple=1\n" * 3)
    in_vain = pystreams("backfill", "priced_orders", "--overwrite", "--json", *HERE)
    assert "Join priced in " in in_vain.err
    assert "none of 12 records found a row in table prices; look whether" in in_vain.err
    (join,) = json.loads(in_vain.out)["joins_in_vain"]
    assert (join["step"], join["records"], join["partner"]) == ("priced", 12, "a row in table prices")
    pystreams("produce", "prices", "-k", "=", "--value-type", "int", "--timestamp", "0", stdin="apple=3\n")
    found = pystreams("backfill", "priced_orders", "--overwrite", "--json", *HERE)
    assert "none of" not in found.err
    assert json.loads(found.out)["joins_in_vain"] == []


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


def test_records_are_emitted_to_a_table_and_to_the_topic(folder, pystreams, wordcount):
    import pyarrow.parquet as pq

    emit = ("--emit", "word-counts=parquet:tables/counts", "--emit", "topic")
    looked = pystreams("backfill", wordcount, *emit, "--dry-run", *HERE)
    assert ["write", "records for word-counts", "parquet tables/counts"] in rows(looked, "write")
    assert not (folder / "tables").exists()
    for _ in range(2):
        done = pystreams("backfill", wordcount, *emit, "--resume", *HERE)
        assert done.code == 0, done.err
        assert rows(done, "emitted") == [["emitted", "word-counts", "8"]]
    table = pq.read_table(folder / "tables" / "counts").to_pylist()
    assert {row["key"]: row["value"] for row in table}["to"] == 2
    assert len(table) == 8
    assert counts(pystreams)["to"] == "2"


def test_output_topics_that_cannot_be_written_are_refused_before_anything_is_computed(folder, pystreams):
    (folder / "unwritten.py").write_text(WORDCOUNT.format(id="unwritten"), encoding="utf-8")
    pystreams("topics", "create", "lines", "-p", "2")
    pystreams("produce", "lines", stdin="to be or not to be\n")
    refused = pystreams("backfill", "unwritten", "--emit", "topic", *HERE)
    assert refused.code == 4
    assert "there is no topic word-counts" in refused.err
    assert "pystreams topics create word-counts --partitions 2" in refused.err
    assert not (folder / ".pystreams" / "backfill").exists()
    looked = pystreams("backfill", "unwritten", "--emit", "topic", "--dry-run", *HERE)
    assert looked.code == 0
    assert "The backfill would be refused now: there is no topic word-counts" in looked.err


def test_an_output_topic_that_is_made_in_between_may_be_as_wide_as_it_likes(folder, pystreams):
    """State is handed over all the same; records for it are not, because they were computed for another width."""
    (folder / "widening.py").write_text(WORDCOUNT.format(id="widening"), encoding="utf-8")
    pystreams("topics", "create", "lines", "-p", "2")
    pystreams("produce", "lines", stdin="to be or not to be\n")
    assert pystreams("backfill", "widening", *HERE).code == 0
    pystreams("topics", "create", "word-counts", "-p", "5")
    refused = pystreams(
        "backfill", "widening", "--resume", "--emit", "topic", "--hand-over", "embedded", *HERE
    )
    assert refused.code == 4
    assert "word-counts has 5 partitions, the backfill writes 2" in refused.err
    handed = pystreams("backfill", "widening", "--resume", "--hand-over", "embedded", *HERE)
    assert handed.code == 0, handed.err
    anew = pystreams("backfill", "widening", "--overwrite", "--emit", "topic", *HERE)
    assert anew.code == 0, anew.err


def test_an_application_cannot_start_between_its_history_and_its_state(pystreams, wordcount, monkeypatch):
    """Killed while records are written to the output topic: live ones must not come among them."""
    from pystreams.backfill.handover.emit_to_topics import EmitToTopic

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmitToTopic, "__call__", killed)
        stopped = pystreams("backfill", wordcount, "--emit", "topic", "--hand-over", "embedded", *HERE)
    assert stopped.code == 130
    refused = pystreams("run", wordcount, "--until-caught-up")
    assert refused.code == 1
    assert "the hand-over of a backfill is incomplete" in refused.err
    again = ("--resume", "--emit", "topic", "--hand-over", "embedded")
    assert rows(pystreams("backfill", wordcount, *again, *HERE), "emitted") == [
        ["emitted", "word-counts", "8"]
    ]
    assert pystreams("run", wordcount, "--until-caught-up").code == 0


def test_what_is_resumed_keeps_its_cut_though_the_log_has_changed(pystreams, wordcount):
    """Its history may even be gone from the source by then."""
    assert pystreams("backfill", wordcount, *HERE).code == 0
    pystreams("produce", "lines", stdin="to be\n" * 4)
    looked = pystreams("backfill", wordcount, "--resume", "--until", "2013-11-01", "--dry-run", *HERE)
    assert looked.code == 0, looked.err
    assert sum(int(row[4]) for row in rows(looked, "input")) == 2
    assert "--until is ignored" in " ".join(looked.err.split())
    resumed = pystreams("backfill", wordcount, "--resume", *HERE)
    assert rows(resumed, "slice")[0][3] == "2"
    begins = pystreams("backfill", wordcount, "--resume", "--staging", "elsewhere", *HERE)
    assert "There is no backfill in elsewhere yet" in begins.err
    assert rows(begins, "slice")[0][3] == "6"


def test_the_snapshot_beside_what_is_staged_goes_with_it(folder, pystreams, wordcount):
    snapshot = ("--hand-over", "snapshot")
    first = pystreams("backfill", wordcount, *snapshot, *HERE)
    assert first.code == 0, first.err
    pystreams("produce", "lines", stdin="once more\n")
    anew = pystreams("backfill", wordcount, "--overwrite", *snapshot, *HERE)
    assert anew.code == 0, anew.err
    handed = pystreams(
        "backfill", wordcount, "--from-snapshot", ".pystreams/backfill/wordcount/snapshot", "--hand-over",
        "embedded",
    )  # fmt: skip
    assert rows(handed, "handed over") == [["handed over", "counts", "10", "0", "0"]]


def test_another_backfills_snapshot_is_refused_before_anything_is_computed(folder, pystreams, wordcount):
    snapshot = ("--hand-over", "snapshot:tables")
    assert pystreams("backfill", wordcount, *snapshot, *HERE).code == 0
    refused = pystreams("backfill", wordcount, "--staging", "elsewhere", *snapshot, *HERE)
    assert refused.code == 1
    assert "holds another snapshot" in refused.err
    assert not (folder / "elsewhere").exists()
    assert pystreams("backfill", wordcount, "--resume", *snapshot, *HERE).code == 0


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
    assert "stage the new backfill in another folder" in refused.err
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
    from pystreams.cli.application.loading import load_application
    from pystreams.clock import SystemClock
    from pystreams.runtime.client_state import ClientState

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


def test_global_tables_are_in_the_plan_and_have_sources_of_their_own(folder, pystreams):
    (folder / "located.py").write_text(
        "from pystreams import App\napp = App('located')\n"
        "places = app.global_table('places', key=str, value=str, name='places-by-code')\n"
        "orders = app.stream('orders', key=str, value=str)\n"
        "orders.join(places, lambda order, place: place, key_fn=lambda order: order).to('placed')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "orders", "places", "placed")
    pystreams("produce", "orders", stdin="vie\nber\n")
    (folder / "places.csv").write_text(
        "topic,partition,offset,timestamp,key,value\nplaces,0,0,5,vie,Vienna\nplaces,0,1,6,ber,Berlin\n",
        encoding="utf-8",
    )
    source = ("--source", "places=csv:places.csv")
    shown = pystreams("backfill", "located", *source, "--until", "2013-11-01", "--dry-run", *HERE)
    assert shown.code == 0, shown.err
    kept = "reads it once, to disk"
    assert rows(shown, "global table") == [["global table", "places-by-code", "places", "2", kept]]
    assert [row[1:3] for row in rows(shown, "note") if "topic places" in row[3]] != []
    done = pystreams("backfill", "located", *source, "--emit", "topic", *HERE)
    assert done.code == 0, done.err
    assert rows(done, "emitted") == [["emitted", "placed", "2"]]
    lost = pystreams("backfill", "located", "--source", "palces=csv:places.csv", "--dry-run", *HERE)
    assert "does not read topic palces" in lost.err
    assert "did you mean places" in lost.err.lower()


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


def test_ctrl_c_keeps_what_is_staged(folder, pystreams, wordcount):
    program = WORDCOUNT.format(id="wordcount").replace("str.split", "stuck")
    stuck = "import threading\n\ndef stuck(line):\n    threading.Event().wait()\n"
    (folder / f"{wordcount}.py").write_text(stuck + program, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "backfill", wordcount, *HERE],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
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


def test_the_plan_says_which_changelogs_are_made_anew(folder, pystreams):
    (folder / "versions.py").write_text(
        'from pystreams import App\n\napp = App("versions")\n'
        'app.table("names", key=str, value=str, name="names", history=1000)\n',
        encoding="utf-8",
    )
    pystreams("topics", "create", "names")
    shown = pystreams("backfill", "versions", "--dry-run", "--hand-over", "embedded", *HERE)
    assert "store names, changelog versions-names-changelog, created again" in shown.out
    shown = pystreams("backfill", "versions", "--dry-run", "--hand-over", "snapshot", *HERE)
    assert "made anew" not in shown.out

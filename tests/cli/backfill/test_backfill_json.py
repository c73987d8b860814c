"""For programs, a backfill prints its plan and its report as one JSON object; what people need stays on stderr."""

from __future__ import annotations

import json

from tests.cli.backfill.backfill_kit import HERE, wordcount
from tests.cli.wordcount_kit import WORDCOUNT

__all__ = ["wordcount"]


def test_a_dry_run_prints_the_plan_as_json(pystreams, wordcount):
    shown = pystreams("backfill", wordcount, "--dry-run", "--json", "--hand-over", "embedded", *HERE)
    assert shown.code == 0, shown.err
    plan = json.loads(shown.out)
    first, second = plan["slices"]
    assert first["reads"] == ["lines"]
    assert (first["records"], second["records"]) == (2, None)
    assert second["stores"] == ["counts"]
    (counts,) = plan["aggregations"]
    assert (counts["store"], counts["gets"], counts["emits"]) == ("counts", "partial results", "last results")
    assert sum(one["end"] - one["start"] for one in plan["inputs"].values()) == 2
    assert "offsets of group wordcount" in [one["what"] for one in plan["writes"]]
    assert plan["refused"] is None
    assert "this is a dry run" in shown.err


def test_a_plan_that_would_be_refused_says_why(folder, pystreams):
    (folder / "unwritten.py").write_text(WORDCOUNT.format(id="unwritten"), encoding="utf-8")
    pystreams("topics", "create", "lines", "-p", "2")
    shown = pystreams("backfill", "unwritten", "--emit", "topic", "--dry-run", "--json", *HERE)
    assert json.loads(shown.out)["refused"].startswith("there is no topic word-counts")


def test_the_report_is_json(pystreams, wordcount):
    done = pystreams("backfill", wordcount, "--json", "--hand-over", "embedded", "--emit", "topic", *HERE)
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["application_id"] == "wordcount"
    assert [one["records"] for one in report["slices"]] == [2, 8]
    assert report["slices"][0]["left_out"] == {}
    assert report["stores"]["counts"]["entries"] == 8
    assert report["emitted"] == {"word-counts": 8}
    assert report["handed_over"]["stores"]["counts"] == {"written": 8, "unchanged": 0, "deleted": 0}
    assert "Handed over to embedded log" in done.err

"""``run --create-topics`` makes the topics that an application uses, and says which it cannot know."""

from __future__ import annotations

import os

import pytest

from tests.cli.wordcount_kit import WORDCOUNT, counts

JOIN = """
from pystreams import App

app = App("join")
customers = app.table("customers", key=str, value=str)
app.stream("orders", key=str, value=str).join(customers, lambda a, b: a + b).to("named")
app.stream("notes", value=str).to("copies")
"""

UNKNOWN = """
import re
from pystreams import App

app = App("unknown")
app.stream(re.compile("in-.*"), key=str, value=str).to(lambda key, value, context: "out-" + value, step="by-value")
app.stream("known", key=str, value=str).to("also-known")
"""


@pytest.fixture
def program(folder):
    def write(text: str) -> str:
        name = f"program_{os.urandom(4).hex()}"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return write


def partitions(pystreams) -> dict[str, str]:
    rows = [line.split("\t") for line in pystreams("topics", "list").lines]
    return {name: count for name, count, *_ in rows}


def test_a_new_application_runs_with_one_command(pystreams, program):
    name = program(WORDCOUNT.format(id="wordcount"))
    ran = pystreams("run", name, "--create-topics", "--until-caught-up")
    assert ran.code == 0, ran.err
    assert "Created lines, word-counts with 1 partition." in ran.err
    assert "for development" in ran.err
    pystreams("produce", "lines", stdin="to be or not to be\n")
    again = pystreams("run", name, "--create-topics", "--until-caught-up")
    assert "Created" not in again.err
    assert counts(pystreams) == {"to": "2", "be": "2", "or": "1", "not": "1"}


def test_without_it_a_missing_topic_is_reported_with_both_ways_out(pystreams, program):
    pystreams("topics", "create", "other")
    failed = pystreams("run", program(WORDCOUNT.format(id="wordcount")), "--until-caught-up")
    assert failed.code == 4
    assert "pystreams topics create lines" in failed.err
    assert "pystreams run --create-topics" in failed.err


def test_topics_that_meet_in_a_step_get_as_many_partitions(pystreams, program):
    pystreams("topics", "create", "customers", "-p", "3")
    ran = pystreams("run", program(JOIN), "--create-topics", "--partitions", "2", "--until-caught-up")
    assert ran.code == 0, ran.err
    assert "Created copies, named, notes with 2 partitions." in ran.err
    assert "Created orders with 3 partitions." in ran.err
    assert partitions(pystreams) == {
        "copies": "2",
        "customers": "3",
        "named": "2",
        "notes": "2",
        "orders": "3",
    }


def test_topics_that_nobody_can_name_are_reported(pystreams, program):
    pystreams("topics", "create", "in-1")
    ran = pystreams("run", program(UNKNOWN), "--create-topics", "--until-caught-up")
    assert ran.code == 0, ran.err
    assert "their names are only known at run time: those that match in-.*" in ran.err
    assert "their names are only known at run time: those that by-value chooses" in ran.err
    assert set(partitions(pystreams)) == {"also-known", "in-1", "known"}


def test_a_dead_letter_topic_is_created_too(pystreams, program):
    setting = ("-s", "errors_dead_letter_queue_topic_name=dead")
    name = program(WORDCOUNT.format(id="wordcount"))
    assert pystreams("run", name, "--create-topics", "--until-caught-up", *setting).code == 0
    assert "dead" in partitions(pystreams)


def test_workers_find_them_there(pystreams, program):
    name = program(WORDCOUNT.format(id="wordcount"))
    options = ("--create-topics", "--partitions", "2", "--workers", "2", "--until-caught-up")
    ran = pystreams("run", name, *options)
    assert ran.code == 0, ran.err
    assert ran.err.count("Created lines, word-counts with 2 partitions.") == 1


def test_partitions_without_it_are_refused(pystreams, program):
    refused = pystreams("run", program(JOIN), "--partitions", "2")
    assert refused.code == 2
    assert refused.err == (
        "Error: --partitions is for --create-topics\n  next:  add --create-topics, or leave --partitions out\n"
    )

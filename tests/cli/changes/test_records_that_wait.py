"""Beside the log, ``diff`` counts the records that wait in repartition topics: what is empty loses nothing, as for
``run``."""

from __future__ import annotations

import json

import pytest

import pystreams as streams
from pystreams.errors import BrokerError
from pystreams.take_over import unprocessed

PROGRAM = """
from pystreams import App

app = App("shop")
sales = app.stream("sales", key=str, value=int).select_key(lambda key, value: key[:1], key=str)
letters = sales.repartition(name="letters").group_by_key().count(name="sums")
letters.to_stream().map_values(str, value=str).to("totals")
"""

OTHER_NAME = PROGRAM.replace('name="letters"', 'name="initials"')
OTHER_TYPE = PROGRAM.replace(
    ".repartition(", '.map_values(lambda value: {"sold": value}, value=dict).repartition('
)
TOPIC = "shop-letters-repartition"


@pytest.fixture
def ran(folder, pystreams):
    """The program has run, and processed all records."""
    assert pystreams("topics", "create", "sales", "totals").code == 0
    sold = pystreams("produce", "sales", "-k", "=", "--value-type", "int", stdin="anna=1\nbert=2\n")
    assert sold.code == 0, sold.err
    (folder / "old.py").write_text(PROGRAM, encoding="utf-8")
    ran = pystreams("run", "old.py", "--until-caught-up")
    assert ran.code == 0, ran.err


@pytest.fixture
def diff(folder, pystreams):
    def compare(program: str):
        (folder / "new.py").write_text(program, encoding="utf-8")
        compared = pystreams("diff", "new.py", "--json")
        answer = json.loads(compared.out)
        return compared.code, next(change for change in answer["changes"] if change["name"] == TOPIC), answer

    return compare


def leave_a_record() -> None:
    """A record in the repartition topic that the application has not processed."""
    with streams.open_log() as log:
        log.produce(TOPIC, "c", 3)


@pytest.mark.parametrize(
    "program,verdict,why",
    [
        pytest.param(OTHER_NAME, "gone", "stop the old version when it has caught up", id="another name"),
        pytest.param(OTHER_TYPE, "changed", "it is empty now, and must be empty", id="another type"),
    ],
)
def test_an_empty_topic_loses_nothing(ran, diff, pystreams, program, verdict, why):
    code, change, _ = diff(program)
    assert (code, change["verdict"], change["loses"]) == (2, verdict, False)
    assert why in change["why"]
    started = pystreams("run", "new.py", "--until-caught-up")
    assert started.code == 0, started.err


@pytest.mark.parametrize("program", [OTHER_NAME, OTHER_TYPE], ids=["another name", "another type"])
def test_a_topic_that_holds_records_loses_them(ran, diff, pystreams, program):
    leave_a_record()
    code, change, answer = diff(program)
    assert (code, change["verdict"], change["loses"]) == (1, "lost", True)
    assert "it holds 1 record not processed yet" in change["why"]
    assert any("let the old version catch up first" in line for line in answer["advice"])
    refused = pystreams("run", "new.py", "--until-caught-up")
    assert refused.code == 3
    assert "it holds 1 record not processed yet" in refused.err
    assert pystreams("run", "old.py", "--until-caught-up").code == 0
    assert diff(program)[0] == 2


def test_where_offsets_may_not_be_read_the_topologies_are_compared_all_the_same(
    ran, folder, pystreams, monkeypatch
):
    def refused(*_: object) -> None:
        raise BrokerError("the group shop may not be described", why="group authorization failed")

    monkeypatch.setattr(unprocessed, "unprocessed", refused)
    # The answer to what has not changed needs no offsets.
    same = pystreams("diff", "old.py")
    assert (same.code, "authorization" in same.err) == (0, False), same.err
    (folder / "new.py").write_text(OTHER_TYPE, encoding="utf-8")
    compared = pystreams("diff", "new.py")
    assert (
        "It was not counted how many records wait in repartition topics: the group shop may not"
        in compared.err
    )
    (row,) = (line for line in compared.lines if TOPIC in line)
    assert "so that the topic is empty" in row
    assert compared.code == 1

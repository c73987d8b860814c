"""What takes long to start, and few files need, is started for one of the processes that run the tests."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tests.dealing import ONE_PROCESS, in_turn, unit_of

ROOT = Path(__file__).resolve().parents[2]

#: A session of Spark, a Kafka that asks for logins, one that may be broken.
STARTED_ONCE = {"spark", "secure", "fragile", "fragile_server"}

#: Has a session of its own, in a run of its own.
RUN_ALONE = "tests/backfill/lake/"


def test_files_that_need_it_are_in_the_folders_that_one_process_runs():
    needing = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        for text in (path.read_text(encoding="utf-8"),)
        # To look at the syntax of all takes seconds; most do not even have the word.
        if any(name in text for name in STARTED_ONCE)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and STARTED_ONCE & {name.arg for name in node.args.args}
    }
    folders = {unit_of(file) for file in needing if not file.startswith(RUN_ALONE)}
    assert folders == set(ONE_PROCESS)


class Item:
    """Of an item of pytest what is asked for."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def test_their_folders_come_first_and_whole_and_files_stay_together():
    given = [
        "tests/backfill/test_shop.py::test_a",
        "tests/backfill/spark/test_a.py::test_a",
        "tests/unit/test_b.py::test_a",
        "tests/backfill/spark/test_b.py::test_a",
        "tests/unit/test_b.py::test_b",
    ]
    items: list[Any] = [Item(nodeid) for nodeid in given]
    assert [item.nodeid for item in in_turn(items)] == [given[1], given[3], given[0], given[2], given[4]]
    assert [unit_of(nodeid) for nodeid in (given[1], given[3])] == ["tests/backfill/spark/"] * 2
    assert unit_of(given[4]) == "tests/unit/test_b.py"

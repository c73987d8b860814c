"""Every row of docs/differences.md is proven by tests that exist, and known to the comparison with Kafka Streams."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
#: The functions that ask all exceptions, one after the other.
ASKING = ("deliberate_difference", "meant_difference")


class Entry(NamedTuple):
    """One of differences.toml: it has exceptions, or says why the comparison cannot meet the difference."""

    what: str
    tests: Sequence[str]
    exceptions: Sequence[str] = ()
    not_met: str = ""


@cache
def entries() -> list[Entry]:
    found = tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))
    return [Entry(**one) for one in found["difference"]]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> set[str]:
    """The names of all functions in a module, also within classes."""
    return {
        node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def asked() -> set[str]:
    """The functions that decide which scenarios may differ."""
    found: set[str] = set()
    for node in ast.walk(tree(HERE / "deliberate.py")):
        if isinstance(node, ast.FunctionDef) and node.name in ASKING:
            calls = (call.func for call in ast.walk(node) if isinstance(call, ast.Call))
            found.update(name.id for name in calls if isinstance(name, ast.Name))
    return found.difference(ASKING)


def test_every_row_has_one_entry_in_the_same_order() -> None:
    rows = [
        line.split(" | ")[0].removeprefix("| ")
        for line in (ROOT / "docs/differences.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| Subject |", "| --- |"))
    ]
    assert [entry.what for entry in entries()] == rows
    assert len(set(rows)) == len(rows)


def test_every_row_names_tests_that_exist() -> None:
    for entry in entries():
        assert entry.tests, f"{entry.what}: no test"
        for test in entry.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), f"{entry.what}: {path} is not there"
            assert name.startswith("test_"), f"{entry.what}: {name} is not a test"
            assert name in functions(ROOT / path), f"{entry.what}: {name} is not in {path}"


def test_every_row_has_an_exception_or_a_reason_for_having_none() -> None:
    known = asked()
    for entry in entries():
        assert bool(entry.exceptions) != bool(entry.not_met), f"{entry.what}: either the one or the other"
        for name in entry.exceptions:
            assert name in known, f"{entry.what}: no comparison asks {name}"


def test_every_exception_belongs_to_a_row() -> None:
    named = {name for entry in entries() for name in entry.exceptions}
    assert asked() == named

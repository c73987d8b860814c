"""tests/README.md says where things are: its folders, files, markers and commands exist, and none is left out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
GUIDE = (TESTS / "README.md").read_text(encoding="utf-8")
QUOTED = set(re.findall(r"`([^`\n]+)`", GUIDE))


def test_files_and_folders_that_it_names_exist():
    named = {text for text in QUOTED if re.fullmatch(r"[\w./]+/[\w./]+", text)}
    assert len(named) > 25
    assert [text for text in named if not any((root / text).exists() for root in (TESTS, TESTS.parent))] == []


def test_every_folder_is_in_it():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and not path.name.startswith("__")}
    assert folders - QUOTED == set()


def test_every_marker_is_in_it():
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    markers = {line.partition(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]}
    assert markers - QUOTED == set()


def test_its_commands_are_targets():
    targets = set(
        re.findall(r"^([a-z-]+):", (TESTS.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {text.split()[1] for text in QUOTED if text.startswith("make ")}
    assert len(named) > 10
    assert named - targets == set()


@pytest.mark.parametrize("example", [f"T{number}" for number in range(1, 14)])
def test_an_example_is_named_in_the_first_line_of_each_file_that_it_lists(example: str):
    (row,) = (line for line in GUIDE.splitlines() if line.startswith(f"| {example} |"))
    listed = re.findall(r"`([\w./]+\.py)`", row)
    first_lines = {path: (TESTS / path).read_text(encoding="utf-8").partition("\n")[0] for path in listed}
    assert listed
    assert [path for path, line in first_lines.items() if not re.search(rf"\b{example}\b", line)] == []

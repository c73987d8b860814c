"""A file that is not an embedded log, or one of a newer pystreams: refused, named, and left as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.schema import SCHEMA_VERSION
from pystreams.errors import ConfigError

COMMANDS = [
    ("topics", "list"),
    ("topics", "create", "t"),
    ("produce", "t"),
    ("consume", "t"),
    ("run", "program", "--until-caught-up"),
]


def make_text(path: Path) -> None:
    path.write_text("these are my notes, and no database at all\n" * 500, encoding="utf-8")


def make_empty_directory(path: Path) -> None:
    path.mkdir()


def make_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (number INTEGER)")


def make_newer_log(path: Path) -> None:
    EmbeddedBroker(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


CASES = {
    "text": (make_text, "not an SQLite database"),
    "directory": (make_empty_directory, "cannot be opened"),
    "other database": (make_other_database, "not an embedded log"),
    "newer log": (make_newer_log, f"schema version {SCHEMA_VERSION + 1}"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_and_left_as_it_is(tmp_path: Path, case: str) -> None:
    make, told = CASES[case]
    path = tmp_path / "log.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConfigError) as caught:
        EmbeddedBroker(path)
    assert told in caught.value.what
    assert str(path) in caught.value.where
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_every_command_says_so(folder: Path, pystreams: Any, case: str, command: tuple[str, ...]) -> None:
    (folder / "program.py").write_text(
        "from pystreams import App\napp = App('a')\napp.stream('t', value=str).to('u')\n", encoding="utf-8"
    )
    make, told = CASES[case]
    make(folder / "mine.db")
    refused = pystreams(*command, "--embedded-log", "mine.db", stdin="x\n")
    assert refused.code == 2, refused.err
    assert told in refused.err
    assert "mine.db" in refused.err
    assert "Traceback" not in refused.err

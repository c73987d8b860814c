"""Records and stores are personal data, perhaps: what commands write is closed to other users of the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.folders import make_folder
from tests.cli.wordcount_kit import WORDCOUNT

OTHERS = 0o007


@pytest.fixture
def umask() -> Iterator[int]:
    """The most common one: everybody may read new files."""
    before = os.umask(0o022)
    yield 0o022
    os.umask(before)


def open_to_others(path: Path) -> list[Path]:
    """What other users can open: below a folder that is closed, nothing."""
    if not path.stat().st_mode & OTHERS:
        return []
    below = sorted(path.iterdir()) if path.is_dir() else []
    return [path, *(found for entry in below for found in open_to_others(entry))]


@pytest.mark.live
@pytest.mark.usefixtures("umask")
def test_nothing_that_commands_write_is_open_to_others(pystreams, folder: Path) -> None:
    (folder / "words.py").write_text(WORDCOUNT.format(id="words"))
    program = {folder / "words.py", folder / "__pycache__"}
    for command in (
        ["topics", "create", "lines", "word-counts"],
        ["produce", "lines"],
        ["run", "words", "--until-caught-up", "-s", "state_snapshot_dir=snapshots"],
        ["archive", "lines", "--to", "archive", "--master", "none"],
        ["backfill", "words", "--master", "none", "--staging", "staged", "--hand-over", "snapshot:snapshot"],
        ["verify", "words", "--master", "none"],
    ):
        done = pystreams(*command, stdin="to be or not to be\n")
        assert done.code == 0, (command, done.err)
    made = {path.name for path in folder.iterdir()} - {path.name for path in program}
    assert {".pystreams", "archive", "snapshot"} <= made
    assert {path.name: open_to_others(path) for path in folder.iterdir() if path not in program} == {
        name: [] for name in made
    }


@pytest.mark.usefixtures("umask")
def test_a_log_in_a_folder_that_is_open_is_closed_itself(pystreams, folder: Path) -> None:
    folder.chmod(0o755)
    assert pystreams("topics", "create", "lines", "--embedded-log", "log.db").code == 0
    assert {path.name for path in folder.iterdir()} >= {"log.db", "log.db.locks"}
    assert [path for path in folder.iterdir() if path.stat().st_mode & OTHERS] == []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("umask_given", "made"), [(0o022, 0o750), (0o002, 0o770), (0o077, 0o700)])
def test_the_umask_decides_about_the_group(tmp_path: Path, umask_given: int, made: int) -> None:
    before = os.umask(umask_given)
    try:
        make_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [made] * 3


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    make_folder(shared)
    make_folder(shared / "within")
    assert mode(shared) == 0o755


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "within")

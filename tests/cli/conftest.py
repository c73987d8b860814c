"""A user at a prompt in an empty folder."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pystreams.cli.main import main
from tests.environment import without


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory: empty, and no setting in the environment. Programs in it are forgotten afterwards: a later
    test may have another one of the same name."""
    without(monkeypatch, "PYSTREAMS_")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    before = set(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and Path(file).absolute().is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def pystreams(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs ``pystreams ARGUMENTS`` with ``stdin`` as its standard input."""

    def run(*arguments: str, stdin: str = "") -> Outcome:
        capfd.readouterr()
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return run

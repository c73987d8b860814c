"""What is typed in a shell of tests and forked sees what it would see if it had been started, and ends as it would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.support import eventually
from tests.starting.forked import make_commands

PROBE = Path(__file__).with_name("probe.py")


class Commands:
    """``pystreams`` and ``python``, each as it is started and as it is forked."""

    def __init__(self, folder: Path) -> None:
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        commands = folder / "commands"
        commands.mkdir()
        self._inherited = make_commands(commands, self.environment)
        assert self._inherited
        self.folder = folder / "folder"
        self.folder.mkdir()
        shutil.copy(PROBE, self.folder / "shown.py")
        self.started, self.forked = Path(sys.executable).parent, commands

    def begin(self, place: Path, *command: str, **options: Any) -> subprocess.Popen[str]:
        options = {"env": self.environment, "cwd": self.folder, **options}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        name, *arguments = command
        return subprocess.Popen(
            [str(place / name), *arguments], pass_fds=self._inherited, text=True, **pipes, **options
        )

    def both(self, *command: str, **options: Any) -> list[tuple[str, str, int]]:
        found = []
        for place in (self.started, self.forked):
            with self.begin(place, *command, **options) as process:
                out, err = process.communicate("a line\n", timeout=60)
                found.append((out, err, process.returncode))
        return found


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("python", "shown.py", "none", "two words"), 0),
        (("python", "./shown.py", "exit"), 7),
        (("python", "-m", "shown", "fail", "ä"), 1),
    ],
    ids=["text", "exit", "module that fails"],
)
def test_it_sees_the_same_world(commands: Commands, command: tuple[str, ...], code: int):
    one, other = commands.both(*command, umask=0o027, env={**commands.environment, "PYTHONPATH": "a:b"})
    seen = [json.loads(out) for out, _, _ in (one, other)]
    for world in seen:
        # A forked one leads a group and inherits no sockets, and Python chooses seeds at random.
        for name in ("group", "hash", "descriptors"):
            del world[name]
        world["main"] = world["main"][0::2]
    assert seen[1] == seen[0]
    assert (one[2], other[2]) == (code, code)
    assert other[1].splitlines()[-1:] == one[1].splitlines()[-1:]


def test_a_program_that_is_an_argument_sees_the_same(commands: Commands):
    code = "import sys; print(sys.argv, sys.path[0], __name__, globals().get('__file__'), input())"
    one, other = commands.both("python", "-c", code, "x")
    assert other == one
    assert one[0] == "['-c', 'x']  __main__ None a line\n"


def test_the_command_is_the_one_that_is_installed(commands: Commands):
    for arguments in (["--version"], ["topics", "crate"], ["topics", "list"]):
        one, other = commands.both("pystreams", *arguments)
        assert other == one


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_signals_reach_it_and_its_end_is_seen(commands: Commands, number: signal.Signals):
    with commands.begin(commands.forked, "python", "shown.py", "wait") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("a line\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(60) == -number
        # Nobody holds its output any more, so it has ended, too.
        assert process.stdout.read() == ""


def test_one_that_is_killed_takes_along_what_belongs_to_it(commands: Commands):
    code = "import os, time; print(os.fork(), flush=True); time.sleep(600)"
    with commands.begin(commands.forked, "python", "-c", code) as process:
        assert process.stdout is not None
        pids = {int(process.stdout.readline()), int(process.stdout.readline())}
        process.kill()
        assert process.stdout.read() == ""
    (child,) = pids - {0}
    eventually(lambda: not Path(f"/proc/{child}").exists() or "\nState:\tZ" in _status(child))


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return "\nState:\tZ"


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        (("python", "-V"), {}),
        (("python", "-u", "-c", "import sys; print('rich' in sys.modules)"), {}),
        (("python", "-c", "import sys; print('rich' in sys.modules)"), {"PYTHONHASHSEED": "1"}),
    ],
    ids=["option", "option and program", "variable"],
)
def test_what_a_fork_would_not_do_is_started(
    commands: Commands, command: tuple[str, ...], variables: dict[str, str]
):
    one, other = commands.both(*command, env={**commands.environment, **variables})
    assert other == one


def test_where_variables_differ_from_those_of_the_tests_everything_is_started(tmp_path: Path):
    assert make_commands(tmp_path, {**os.environ, "LC_ALL": "of nobody"}) == []
    assert list(tmp_path.iterdir()) == []

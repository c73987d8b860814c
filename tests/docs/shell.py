"""A shell on a terminal of its own, in which the commands of a page run one after the other."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path
from types import TracebackType

from tests.starting.forked import make_commands

COLUMNS = 120

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_END = "end of the command"
_AT_END = re.compile(rb"%s (\d+) (\d*)\r?\n" % _END.encode())
#: What bash says of jobs that end, at some later moment.
_OF_JOBS = re.compile(
    rb"^(\[\d+\][+-]?|bash: line \d+:) .*\b(Killed|Done|Terminated|Interrupt|Exit)\b.*\r?\n", re.MULTILINE
)
#: Variables of the tests, and of the ``make`` that runs them, which are not for the programs of a page.
_OF_TESTS = ("PYSTREAMS_", "PYTHON", "PYTEST", "MAKE", "MFLAGS", "ARGS")


class ShellError(AssertionError):
    """A command did not end in time, or the shell is gone."""


class Shell:
    """A bash with job control. Its terminal knows neither colours nor cursors: bars that move are not drawn there.

    Commands have no input of their own. One that ends in ``&`` goes on in silence; ``close`` kills what still runs.
    ``forking``: ``pystreams`` and ``python`` are forked from a process that has imported pystreams.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *, forking: bool = False) -> None:
        self._folder = folder
        self._commands = tempfile.TemporaryDirectory()
        full = _environment(environment)
        inherited = make_commands(Path(self._commands.name), full) if forking else []
        #: What makes the commands that fork the first ones that are found, also if the command before has others.
        self._before = f"PATH={self._commands.name}:${{PATH#{self._commands.name}:}}; " if inherited else ""
        #: Runs Python's programs as the shell does.
        self.python = f"{self._commands.name}/python" if inherited else sys.executable
        self.inherited = inherited
        self._terminal, inside = pty.openpty()
        ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=inside,
            stderr=inside,
            env=full,
            pass_fds=inherited,
            start_new_session=True,
        )
        os.close(inside)
        self._background: list[int] = []

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, command: str, timeout_s: float = 300.0) -> tuple[int, str]:
        """Its exit code, and what it has written to its terminal, errors included."""
        assert self._bash.stdin is not None
        background = command.endswith("&")
        # Only what goes on has a process group of its own, to be killed with all that it has started.
        typed = f"set -m; {command[:-1]} >/dev/null 2>&1 & set +m" if background else command
        self._bash.stdin.write(
            f'{self._before}{{ {typed}\n}} </dev/null\nrc=$?; echo "{_END} $rc $!"; (exit $rc)\n'.encode()
        )
        self._bash.stdin.flush()
        text, code, started = self._read_to_the_end(command, time.monotonic() + timeout_s)
        if background:
            self._background.append(int(started))
        return int(code), text

    def _read_to_the_end(self, command: str, deadline: float) -> tuple[str, str, str]:
        """What is said, the exit code, and the process that goes on. What comes behind these is bash's, of jobs."""
        told = b""
        while (end := _AT_END.search(told)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                raise ShellError(f"{command!r} did not end in time; so far it said:\n{told.decode()}")
            told += os.read(self._terminal, 65536)
        said = _OF_JOBS.sub(b"", told[: end.start()]).decode()
        return _ESCAPES.sub("", said).replace("\r\n", "\n"), end[1].decode(), end[2].decode()

    def close(self) -> None:
        """Kill what still runs, and the shell."""
        for group in (*self._background, self._bash.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._bash.communicate()
        os.close(self._terminal)
        self._commands.cleanup()


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """Programs of this Python's environment come first; settings of the tests' own environment do not count."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    plain = {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"}
    return {**kept, "PATH": path, **plain, **own}

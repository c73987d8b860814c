"""A run with workers, watched from outside: what it prints, which processes it has."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.linux import alive, children, command_line, process_name
from tests.live.support import eventually

ROOT = Path(__file__).resolve().parents[3]


class WorkersRun:
    """``pystreams run APPLICATION --workers N`` as a process."""

    def __init__(self, folder: Path, *arguments: str, under: Sequence[str] = (), **environment: str) -> None:
        """``under`` is a command that runs it."""
        self.text = ""
        path = os.pathsep.join([str(folder), str(ROOT)])
        self.process = subprocess.Popen(
            [*under, sys.executable, "-m", "pystreams", "run", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        #: Every worker's process that was ever seen.
        self.seen: set[int] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line

    def workers(self) -> dict[int, int]:
        """The processes that are there, by the workers' numbers."""
        found = {}
        for pid in self._processes():
            arguments = command_line(pid)
            if "--number" in arguments:
                found[int(arguments[arguments.index("--number") + 1])] = pid
            elif named := re.fullmatch(r"worker (\d+)", process_name(pid)):
                found[int(named.group(1))] = pid
        self.seen.update(found.values())
        return found

    def spare(self) -> int | None:
        """The process that waits for the death of a worker, if there is one."""
        spares = self._processes() - set(self.workers().values())
        return next((pid for pid in spares if "--spare" in command_line(pid)), None)

    def _processes(self) -> set[int]:
        return {
            pid
            for pid in children(self.process.pid)
            if "pystreams.cli.commands.workers.worker_program" in command_line(pid)
        }

    def all_there(self, number: int) -> dict[int, int]:
        """Wait until so many workers have a process."""

        def complete() -> dict[int, int] | None:
            found = self.workers()
            return found if len(found) == number else None

        return eventually(complete, f"{number} workers; so far: {self.text}")

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until something has been printed."""
        search = re.compile(pattern, re.MULTILINE).search
        try:
            eventually(lambda: search(self.text) or not self._reader.is_alive())
        except AssertionError as error:
            raise AssertionError(f"{error}; {pattern!r} is not in: {self.text}") from None
        found = search(self.text)
        assert found is not None, f"{pattern!r} is not in: {self.text}"
        return found

    def send(self, number: signal.Signals) -> None:
        self.workers()
        self.process.send_signal(number)

    def ends_with(self, exit_code: int) -> None:
        """Wait for its end; no process of it may be left."""
        found = self.process.wait(60)
        self._reader.join()
        assert found == exit_code, self.text
        eventually(lambda: not self.left(), f"left over: {self.left()}")

    def left(self) -> list[int]:
        """The workers' processes that still live."""
        return [pid for pid in self.seen if alive(pid)]

    def close(self) -> None:
        """End it, however the test has gone."""
        if self.process.poll() is None:
            self.workers()
            self.process.kill()
        self.process.wait()
        for pid in self.left():
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()


Start = Callable[..., WorkersRun]

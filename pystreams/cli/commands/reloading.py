"""``run --reload``: when a Python file changes, the application stops as after Ctrl-C, and the same process starts it
again.

The new program is first tried in a separate process. If it cannot be loaded, or if it would lose stored content, the
running application continues.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import typer

from pystreams.cli.commands.diff import show_changes
from pystreams.cli.commands.reload_trial import Trial
from pystreams.cli.terminal.exits import exit_of
from pystreams.cli.terminal.logs import command_log
from pystreams.cli.terminal.show_error import show_error
from pystreams.errors import ConfigError, StreamsError
from pystreams.runtime.signals import stop_on_signals
from pystreams.take_over.last_run import LastRun

_LOOK_S: Final = 0.25

#: The time of change (ns) and the size (bytes) of each file.
Files: TypeAlias = Mapping[Path, tuple[int, int]]

#: Runs the application until the event is set. Calls the function with the application's description when it is loaded.
Run: TypeAlias = Callable[[threading.Event, Callable[[str], None]], None]


def check_reload(workers: int | None, *, until_caught_up: bool) -> None:
    """Raises ``ConfigError`` for options that do not go with ``--reload``."""
    if workers is not None:
        raise ConfigError(
            "--reload starts one process again, and --workers starts others",
            hint="leave --workers (PYSTREAMS_WORKERS) out during development",
        )
    if until_caught_up:
        raise ConfigError(
            "--reload waits for changes, and --until-caught-up ends the run",
            hint="leave one of them out",
        )


def run_reloading(application: str, setting: Sequence[str], flags: Mapping[str, Any], run: Run) -> None:
    """Run the application, and again after each change, until a signal. ``application``, ``setting`` and ``flags`` are
    those of the command line. Exits with the code of the last error if the signal comes while no application runs."""
    reloader = _Reloader(partial(Trial, application, setting, flags))
    reloader.start()
    try:
        run(reloader.stop, reloader.loaded)
    except StreamsError as error:
        reloader.runs = False
        show_error(error, sys.argv[1:])
        with stop_on_signals(reloader.stop):
            command_log.warning("Nothing runs. Waiting for a change of a Python file below %s.", Path.cwd())
            reloader.stop.wait()
        if not reloader.stop.for_restart:
            raise typer.Exit(exit_of(error)) from None
    if reloader.stop.for_restart:
        _start_again()


def _start_again() -> NoReturn:
    """Replace the program of this process by itself. Files and locks are closed with it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the same command again


class _Stop(threading.Event):
    """Ends a run. A signal sets it, and counts more than a change, whichever comes first."""

    def __init__(self) -> None:
        super().__init__()
        #: Whether the run ends only to start again.
        self.for_restart = False

    def set(self) -> None:
        self.for_restart = False
        super().set()

    def set_for_restart(self) -> None:
        if not self.is_set():
            self.for_restart = True
            super().set()


class _Reloader:
    """Watches the files on a thread of its own."""

    def __init__(self, attempt: Callable[[], Trial]) -> None:
        """``attempt`` tries the changed program."""
        self.stop = _Stop()
        #: Whether the application runs; if not, the command waits for a change.
        self.runs = False
        self._attempt = attempt
        #: The description of the program that was loaded last.
        self._last: Any = None
        # Before the program is loaded: what changes while it loads is a change.
        self._files = python_files(Path.cwd())

    def start(self) -> None:
        threading.Thread(target=self._watch, name="pystreams-reload", daemon=True).start()

    def loaded(self, description: str) -> None:
        """The application with this description (``describe --format json``) is loaded."""
        self._last = json.loads(description)
        self.runs = True

    def _watch(self) -> None:
        while not self.stop.is_set():
            changed = self._next_change()
            names = ", ".join(str(path.relative_to(Path.cwd())) for path in changed[:3])
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            command_log.info("Changed: %s%s.", names, more)
            self._try()

    def _next_change(self) -> list[Path]:
        """The files of the next change, when all of it is written."""
        while True:
            threading.Event().wait(_LOOK_S)
            now = python_files(Path.cwd())
            if now == self._files:
                continue
            while (later := _after(_LOOK_S)) != now:
                now = later
            changed = sorted(path for path, _ in set(now.items()) ^ set(self._files.items()))
            self._files = now
            return list(dict.fromkeys(changed))

    def _try(self) -> None:
        """Try the new program in a process of its own; stop the application if it can start, else show the error."""
        tried = self._attempt()
        if tried.description is None:
            self._stay(tried, "cannot be loaded")
            return
        if self._last is not None:
            # The error of a refusal has the advice.
            say = _say_nothing if tried.refused else command_log.info
            show_changes(LastRun(self._last["topology"]), tried.description, say, restarts=True)
        if tried.refused:
            self._stay(tried, "would not start")
            return
        command_log.info("The application starts again with the changed program.")
        self.stop.set_for_restart()

    def _stay(self, tried: Trial, why: str) -> None:
        command_log.warning("%s", tried.said)
        going = "The application goes on as it was" if self.runs else "Nothing runs"
        command_log.warning("The changed program %s. %s; waiting for the next change.", why, going)


def _say_nothing(_: str) -> None:
    pass


def _after(pause_s: float) -> Files:
    threading.Event().wait(pause_s)
    return python_files(Path.cwd())


def python_files(folder: Path) -> Files:
    """The Python files below a folder, without hidden folders and virtual environments."""
    return dict(_python_files(folder))


def _python_files(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    for place, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for name in names:
            if name.endswith(".py"):
                path = Path(place, name)
                try:
                    found = path.stat()
                except OSError:  # deleted meanwhile
                    continue
                yield path, (found.st_mtime_ns, found.st_size)

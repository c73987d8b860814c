"""The application of a trial for ``pystreams run``, and what happens to its processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.catching_up.programs import application
from tests.catching_up.trials import Trial

if TYPE_CHECKING:
    from pystreams import App

#: The variable that names the folder with the file of the trial.
FOLDER, TRIAL = "CATCHING_UP_FOLDER", "trial.json"


class Seen:
    """Counts the records that a process begins; takes its time over those of the slow partition; kills the process
    where the trial says so: each kill happens once, in whichever process comes to it first."""

    def __init__(self, trial: Trial, folder: Path | None = None) -> None:
        self._slow = f"a{trial.run.slow_partition}."
        self._folder = folder
        self._kills = [(folder / f"kill-{n}", at) for n, at in enumerate(trial.run.kills)] if folder else []
        self._aim = next(((flag, at) for flag, at in self._kills if not flag.exists()), None)
        self._records = 0

    def __call__(self, value: str) -> None:
        """A record begins."""
        self._records += 1
        if value.startswith(self._slow):
            time.sleep(0.001)
        if self._aim is not None and self._records >= self._aim[1]:
            flag, self._aim = self._aim[0], None
            try:
                flag.touch(exist_ok=False)
            except FileExistsError:  # another process was killed instead
                return
            os.kill(os.getpid(), signal.SIGKILL)


def __getattr__(name: str) -> App:
    """``app``, made when it is asked for: this module is also imported where there is no trial."""
    if name != "app":
        raise AttributeError(name)
    folder = Path(os.environ[FOLDER])
    trial = msgspec.json.decode((folder / TRIAL).read_bytes(), type=Trial)
    return application(trial, Seen(trial, folder))

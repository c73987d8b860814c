"""Commands as processes of their own, with the environment of somebody who logs in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.workers.workers_kit import ROOT


def command(folder: Path, environment: dict[str, str], *arguments: str, stdin: str = "") -> tuple[int, str]:
    """Run ``pystreams ARGUMENTS`` in a folder: its exit code, and all that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pystreams", *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout

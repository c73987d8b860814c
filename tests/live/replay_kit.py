"""Replays of dead letters in processes of their own, which kill themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.live.support import Log

ROOT = Path(__file__).resolve().parents[2]


def replay(log: Log, *options: str, kill: tuple[str, int] = ("never", 0)) -> int:
    """``pystreams dlq replay dead`` in a process of its own; its exit code, or the signal that killed it."""
    servers = getattr(log, "bootstrap_servers", None)
    place = ["--bootstrap-servers", servers] if servers else ["--embedded-log", str(log.path / "log.db")]
    command = ["dlq", "replay", "dead", "--yes", *options, *place]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.live.killed_command", kill[0], str(kill[1]), *command],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode

"""Builds of this checkout, with the build backend of the environment of development."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build ``wheel`` or ``sdist`` of the project in ``source`` into ``target``. Nothing is downloaded."""
    chosen = [argument for kind in kinds for argument in ("--target", kind)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *chosen, "--directory", target],
        cwd=source,
        check=True,
        capture_output=True,
    )

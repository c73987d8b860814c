"""Airflow and Dagster, each in an environment of its own: they ask for many packages, in versions of their own.

They come from PyPI and are kept in ``.pystreams/schedulers``: 500 MB. ``make test-schedulers`` makes the environments
and runs the tests of this folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kafka.server import ROOT

#: The packages, by the name of the environment.
PACKAGES: Final = {"airflow": "apache-airflow==3.3.2", "dagster": "dagster==1.13.29"}

#: Set by ``make test-schedulers``, so that other runs of the tests skip these.
WANTED: Final = "TEST_SCHEDULERS"

_MADE: Final = ROOT / ".pystreams" / "schedulers"


def why_not() -> str | None:
    """Why these tests do not run in this process; None if they do."""
    return None if os.environ.get(WANTED) else "needs Airflow and Dagster: make test-schedulers"


def program(environment: str, name: str) -> str:
    """The path of a program in an environment."""
    return str(_folder(environment) / "bin" / name)


def make() -> None:
    """Make the environments that are missing. Raises ``CalledProcessError`` if pip cannot."""
    for environment, package in PACKAGES.items():
        folder = _folder(environment)
        whole = folder / "whole"
        if whole.exists():
            continue
        print(f"Installing {package} into {folder} ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [
            program(environment, "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, package], check=True)
        whole.touch()


def _folder(environment: str) -> Path:
    return _MADE / PACKAGES[environment].replace("==", "-")

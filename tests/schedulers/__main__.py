"""Runs the tests of this folder with the real Airflow and Dagster, whose environments it makes before.

python -m tests.schedulers [ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.schedulers.environments import WANTED, make


def main() -> None:
    make()
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), *sys.argv[1:]]
    sys.exit(subprocess.run(command, env={**os.environ, WANTED: "1"}, check=False).returncode)


if __name__ == "__main__":
    main()

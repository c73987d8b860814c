"""Runs the tests of this folder on the Spark for which Iceberg and Delta are made, and fetches all three before.

python -m tests.backfill.lake [ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.backfill.lake.formats import PACKAGES, fetch
from tests.kafka.server import ROOT


def main() -> None:
    fetch()
    # That Spark leaves sockets open.
    unclosed = ("-W", "ignore::ResourceWarning")
    command = [sys.executable, "-m", "pytest", *unclosed, str(Path(__file__).parent), *sys.argv[1:]]
    paths = os.pathsep.join([str(PACKAGES), str(ROOT)])
    sys.exit(subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode)


if __name__ == "__main__":
    main()

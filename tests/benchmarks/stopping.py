"""How long a running application takes from SIGTERM to its end (``make bench-stopping``).

Each task has a store with keys that changed since the last commit, which the last commit writes. With
``--bootstrap-servers`` it runs on that Kafka, otherwise on an embedded log.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Nothing is committed before the end, so that the last commit has all to do.
PROGRAM = """
from pystreams import App

app = App("stopping-{tasks}", commit_interval_ms=3_600_000, poll_ms=50)
counts = app.stream("stopping-in-{tasks}", key=str, value=str).group_by_key().count(name="counts")
counts.to_stream().to("stopping-out-{tasks}")
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pystreams", *arguments]


def measure(tasks: int, keys: int, servers: str | None) -> tuple[float, str]:
    """Seconds from the signal to the end of the process, and its last line."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "stopping.py").write_text(PROGRAM.format(tasks=tasks), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}
        if servers is not None:
            environment["PYSTREAMS_BOOTSTRAP_SERVERS"] = servers
        # A broker deletes topics later: no two measurements have the same.
        topics = [f"stopping-in-{tasks}", f"stopping-out-{tasks}"]
        create = command("topics", "create", *topics, "--partitions", str(tasks))
        subprocess.run(create, cwd=folder, env=environment, check=True, capture_output=True)
        produce = command("produce", topics[0], "-k", "=")
        records = "".join(f"key{number}=x\n" for number in range(keys))
        subprocess.run(
            produce, cwd=folder, env=environment, check=True, input=records.encode(), capture_output=True
        )
        try:
            return stopped(folder, environment, keys)
        finally:
            for arguments in (["reset", "stopping", "--yes"], ["topics", "delete", *topics]):
                subprocess.run(
                    command(*arguments), cwd=folder, env=environment, check=False, capture_output=True
                )


def stopped(folder: Path, environment: dict[str, str], keys: int) -> tuple[float, str]:
    written = folder / "log"
    with (
        written.open("wb") as log,
        subprocess.Popen(command("run", "stopping"), cwd=folder, env=environment, stderr=log) as process,
    ):
        while f" {keys:,} records " not in written.read_text():
            if process.poll() is not None:
                raise RuntimeError(written.read_text())
            time.sleep(0.2)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait()
    return time.monotonic() - started, written.read_text().splitlines()[-1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each number of tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--bootstrap-servers")
    given = parser.parse_args(arguments)
    for tasks in given.tasks:
        seconds, last = measure(tasks, given.keys, given.bootstrap_servers)
        print(f"{tasks:3} tasks, {given.keys} keys: {seconds:.1f} s   {last}", flush=True)


if __name__ == "__main__":
    main()

"""An application in a package of its own, ``shop``, which is nowhere but in a folder, and in the zip that is sent to
workers; and the command that runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyarrow import dataset

from pystreams.backfill.sources import EmbeddedSource
from tests.backfill.live import append, create
from tests.backfill.programs import history
from tests.live.support import Log

#: With SHOP_KILLS, its first slice kills the executor that it runs in, once: a JVM, the parent of the process from
#: which Spark's Python workers are forked. With SHOP_MARKS, its second slice says where it is at work, and waits until
#: somebody lets it go on.
_PROGRAM: Final = """
import os
import signal
import time
from pathlib import Path

from pystreams import App


def words_of(line):
    kills = os.environ.get("SHOP_KILLS")
    if kills:
        kill_executor(Path(kills) / "killed")
    return line.split()


def kill_executor(mark):
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    command = Path(f"/proc/{executor}/cmdline").read_text()
    assert "ExecutorBackend" in command, command
    mark.write_text(executor)
    os.kill(int(executor), signal.SIGKILL)


def counted(count):
    marks = os.environ.get("SHOP_MARKS")
    if marks:
        wait(Path(marks))
    return count


def wait(marks):
    (marks / f"at-work-{os.getsid(0)}").touch()
    end = time.monotonic() + 120
    while not (marks / "go-on").exists():
        assert time.monotonic() < end, "nobody lets this task go on"
        time.sleep(0.05)


app = App("shop")
words = app.stream("lines", value=str).flat_map_values(words_of).group_by(lambda word: word)
words.count(name="counts").to_stream().map_values(counted).to("word-counts", value=int)
"""

_PARTITIONS: Final = 3


@dataclass(frozen=True)
class Shop:
    """The folder has the package, ``shop.zip``, and an embedded log with some history."""

    folder: Path

    @property
    def zip(self) -> Path:
        return self.folder / "shop.zip"

    @property
    def source(self) -> EmbeddedSource:
        return EmbeddedSource(str(self.folder / "log" / "log.db"))

    def command(self, *arguments: str) -> list[str]:
        """``pystreams backfill`` of the application, which prints its report as JSON."""
        pystreams = str(Path(sys.executable).with_name("pystreams"))
        log = ["--embedded-log", self.source.path]
        return [pystreams, "backfill", "shop.app", *log, "--json", *arguments]

    def report(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """Run the command in the folder to its end: what it prints."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        report: dict[str, Any] = json.loads(done.stdout)
        return report


def make_shop(folder: Path) -> Shop:
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "app.py").write_text(_PROGRAM, encoding="utf-8")
    shop = Shop(folder)
    with zipfile.ZipFile(shop.zip, "w") as zipped:
        for name in ("shop/__init__.py", "shop/app.py"):
            zipped.write(folder / name, name)
    past = history("word count", 5, _PARTITIONS)
    with closing(Log(folder / "log")) as log:
        create(log, past, ["word-counts"])
        append(log, past)
    return shop


def computed(report: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on where a backfill ran: its slices, the digests of its stores, what it emitted."""
    return {name: report[name] for name in ("inputs", "slices", "stores", "emitted")}


def emitted(folder: Path) -> list[dict[str, Any]]:
    """The records that were emitted to files, in order."""
    rows: Any = dataset.dataset(folder, partitioning="hive").to_table()
    found: list[dict[str, Any]] = rows.sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    ).to_pylist()
    return found

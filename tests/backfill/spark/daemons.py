"""Spark's own processes as users start them, on loopback: a standalone cluster, and a server of Spark Connect.

Each is a session of processes, which ends as one, with the executors and the Python workers that it has started.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyspark

from tests.backfill.spark.killing import kill_session
from tests.java import QUICK, SPARK, with_archive
from tests.kafka.server import free_port
from tests.live.support import eventually

SPARK_HOME: Final = Path(pyspark.__file__).parent
_DEPLOY: Final = "org.apache.spark.deploy"
_START_TIMEOUT_S: Final = 120.0

#: Options of the JVMs of daemons and executors, which live for a test or two.
QUICK_JVM: Final = " ".join((*QUICK, *with_archive(SPARK)))


@dataclass
class Daemons:
    """Starts daemons that log to files in ``folder``."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """The process, which is also the name of its session. It ends with ``stack``."""
        told = self.stack.enter_context(self.log_of(name).open("w", encoding="utf-8"))
        process = self.stack.enter_context(
            subprocess.Popen(
                command,
                stdout=told,
                stderr=told,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
                cwd=self.folder,
                start_new_session=True,
            )
        )
        self.stack.callback(kill_session, process.pid)
        return process.pid

    def log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster: the URL of its master, and the sessions of its workers."""

    url: str
    workers: Sequence[int]


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers of one core, each on an address of its own: Spark takes them for two hosts."""
    url = f"spark://127.0.0.1:{free_port()}"
    daemons = Daemons(folder)
    environment = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM}
    spark_class = str(SPARK_HOME / "bin" / "spark-class")

    def start(name: str, kind: str, *arguments: str) -> int:
        return daemons.start(name, [spark_class, f"{_DEPLOY}.{kind}", *arguments], environment)

    with daemons.stack:
        port = url.rpartition(":")[2]
        start("master", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        workers = []
        for number in (1, 2):
            at = ["--host", f"127.0.0.{number}", "--webui-port", "0", "-c", "1", "-m", "1200m"]
            work = str(folder / f"worker-{number}")
            workers.append(start(f"worker-{number}", "worker.Worker", *at, "-d", work, url))
        log = daemons.log_of("master")
        eventually(
            lambda: log.read_text(encoding="utf-8").count("Registering worker") == 2,
            "two workers",
            _START_TIMEOUT_S,
        )
        yield Cluster(url, workers)


@dataclass(frozen=True)
class ConnectServer:
    """A server of Spark Connect, and the port of Spark's UI there. Its working directory is ``folder``."""

    url: str
    ui_port: int
    folder: Path


@contextmanager
def connect_server(folder: Path, **environment: str) -> Iterator[ConnectServer]:
    """Started with Spark's own script, on two cores of this machine."""
    port, ui_port = free_port(), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.ui.port": str(ui_port),
    }
    command = [str(SPARK_HOME / "sbin" / "start-connect-server.sh"), "--wait", "--master", "local[2,4]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    places = {"SPARK_LOG_DIR": str(folder / "logs"), "SPARK_PID_DIR": str(folder / "pids")}
    daemons = Daemons(folder)
    with daemons.stack:
        daemons.start("connect", command, {**places, **environment})
        eventually(lambda: _listens(port), "the server listens", _START_TIMEOUT_S)
        yield ConnectServer(f"sc://127.0.0.1:{port}", ui_port, folder)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False

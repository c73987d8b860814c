"""A real Apache Kafka of one node (KRaft) on this machine: for the tests, and for ``make kafka``.

Its jars come from Maven and are kept in ``.pystreams/kafka``; its data lives in a folder of the caller's.

    python -m tests.kafka.server --port 9092 --data .pystreams/kafka/data
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.java import KAFKA, QUICK, with_archive

VERSION = "4.3.1"
ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / ".pystreams" / "kafka" / VERSION / "jars"
#: The features of a new cluster, as Kafka's tool for formatting writes them.
_FORMATTED = JARS.parent / "bootstrap.checkpoint"
POM = Path(__file__).with_name("pom.xml")

#: Below those that Linux gives to outgoing connections.
_PORTS = range(10_000, 32_768)

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0

#: Small, and quick to rebalance; everything else is Kafka's default.
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.retention.check.interval.ms": "300000",
    # A third of what a broker without work costs are records that say so, twice a second (KIP-835).
    "metadata.max.idle.interval.ms": "0",
    # Each thread that waits for requests looks up three times a second: a quarter of the rest.
    "num.network.threads": "1",
    "num.io.threads": "3",
}

#: Small, and quick to start rather than fast in the long run: for tests.
JVM_OPTIONS = ("-Xmx512m", "-Xms128m", *QUICK, *with_archive(KAFKA))


class KafkaServerError(RuntimeError):
    """Kafka does not run; the text is for people."""


def why_not() -> str | None:
    """What is missing to run Kafka; None if nothing is."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if JARS.is_dir() and "java" not in missing:
        return None
    return f"Kafka needs {' and '.join(missing)} on the PATH" if missing else None


def fetch_jars(pom: Path = POM, jars: Path = JARS) -> None:
    """Have Maven copy the dependencies of ``pom`` (Kafka's jars) to ``jars``; does nothing if they are there."""
    if jars.is_dir():
        return
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Tests run in several processes, and one of them is enough for this.
    with (jars.parent / f"{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _fetch(pom, jars)


def _fetch(pom: Path, jars: Path) -> None:
    print("Fetching jars with Maven, which is needed once ...", flush=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        partial = Path(folder) / "jars"
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        if subprocess.run([*command, f"-DoutputDirectory={partial}"], check=False).returncode != 0:
            raise KafkaServerError("Maven could not fetch the jars; its output says why")
        # Under its own name only once it is whole.
        partial.rename(jars)


def free_port() -> int:
    """A port on which nobody listens. No connection of the tests takes it until a server does, or while the server is
    down: the system gives them others."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class KafkaServer:
    """One node on loopback. ``stop`` ends it cleanly, ``kill`` does not; ``start`` starts it again on the same data."""

    def __init__(
        self,
        data: Path,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        cluster_id: str = "",
    ) -> None:
        self.port = port or free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.log = data / "server.log"
        self._data = data
        self._properties = dict(properties or {})
        self._jvm_options = jvm_options
        self.controller_port = free_port()
        self._cluster_id = cluster_id or uuid.uuid4().hex[:22]
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it accepts connections. Raises ``KafkaServerError`` with the end of its log if it does not."""
        fetch_jars()
        if self._accepts():
            raise KafkaServerError(
                f"Kafka cannot listen on {self.bootstrap_servers}: somebody else does; another Kafka?"
            )
        self._data.mkdir(parents=True, exist_ok=True)
        config = self._data / "server.properties"
        config.write_text(self._config())
        with self.log.open("ab") as log:
            if not (self._data / "log" / "meta.properties").exists():
                self._format(config, log)
            self._process = subprocess.Popen(
                self._java(["kafka.Kafka", str(config)]),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us; we stop it
            )
        self._leash = _kill_when_we_are_gone(self._process.pid)
        self._wait_until_up()

    def configure(self, properties: Mapping[str, str]) -> None:
        """Add to the properties of the next start."""
        self._properties.update(properties)

    @property
    def running(self) -> bool:
        """It was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        leash, self._leash = self._leash, None
        if leash is not None:
            leash.kill()
            leash.communicate()
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _config(self) -> str:
        own = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": str(self._data / "log"),
        }
        return "".join(
            f"{name}={value}\n" for name, value in {**PROPERTIES, **own, **self._properties}.items()
        )

    def _format(self, config: Path, log: IO[bytes]) -> None:
        """Do what Kafka's tool does. The tool is one more Java process, so it runs once. Later clusters get a copy of
        its file, and ids of their own."""
        folder = self._data / "log"
        if _FORMATTED.is_file():
            folder.mkdir(exist_ok=True)
            shutil.copyfile(_FORMATTED, folder / _FORMATTED.name)
            directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            node = {**PROPERTIES, **self._properties}["node.id"]
            ids = {"cluster.id": self._cluster_id, "directory.id": directory, "node.id": node, "version": "1"}
            (folder / "meta.properties").write_text(
                "".join(f"{name}={value}\n" for name, value in ids.items())
            )
            return
        tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c", str(config)]
        if subprocess.run(self._java(tool), stdout=log, stderr=log, check=False).returncode != 0:
            raise self._failed("Kafka's storage cannot be formatted")
        copy = _FORMATTED.with_name(f"{_FORMATTED.name}.{os.getpid()}")
        shutil.copyfile(folder / _FORMATTED.name, copy)
        copy.rename(_FORMATTED)

    def _java(self, arguments: list[str]) -> list[str]:
        options = [*self._jvm_options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"]
        return ["java", *options, "-cp", str(JARS / "*"), *arguments]

    def _accepts(self) -> bool:
        # The controller comes first, the brokers' port opens when all the rest is there.
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if self._accepts():
                return
            time.sleep(0.05)
        self.kill()
        raise self._failed("Kafka did not start")

    def wait(self) -> None:
        """Until it ends. Raises ``KafkaServerError`` then, since nobody has stopped it."""
        assert self._process is not None
        self._process.wait()
        raise self._failed("Kafka has ended")

    def _failed(self, what: str) -> KafkaServerError:
        end = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
        return KafkaServerError(f"{what}; the end of {self.log}:\n{end}")


def _kill_when_we_are_gone(pid: int) -> subprocess.Popen[bytes]:
    """A process that ends another one as soon as this one is gone, however it went: by ``kill -9``, too."""
    script = 'read -r _; kill "$1"'
    return subprocess.Popen(
        ["sh", "-c", script, "leash", str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def interrupt_on_signals() -> None:
    """Have SIGTERM and a closed terminal do what Ctrl-C does. A shell that starts us in the background would have us
    ignore Ctrl-C, and everything modelled on it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # nohup
        signal.signal(number, signal.default_int_handler)


def main() -> None:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=Path, default=ROOT / ".pystreams" / "kafka" / "data")
    arguments = parser.parse_args()
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    interrupt_on_signals()
    server = KafkaServer(arguments.data, arguments.port)
    try:
        print(f"Starting Apache Kafka {VERSION} ...", flush=True)
        server.start()
        print(
            f"Kafka listens on {server.bootstrap_servers} (process {server.pid}); Ctrl-C stops it.",
            flush=True,
        )
        server.wait()
    except KafkaServerError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # the terminal may be closed
            print("Stopping ...", flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()

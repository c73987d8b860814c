"""Who is measured: how each is built, and with which command it runs a job. All stop cleanly on SIGTERM.

A further peer is a class that has what ``Peer`` names, and a line in ``PEERS``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.kafka.server import ROOT

JOBS = ("stateless", "wordcount", "windows", "join")

_JAVA_SOURCES = ROOT / "tests" / "benchmarks" / "peers" / "java"


@dataclass(frozen=True)
class Run:
    """One application on one job. All peers get the same settings."""

    job: str
    application_id: str
    bootstrap_servers: str
    inputs: tuple[str, ...]
    output: str
    folder: Path
    threads: int = 1
    commit_interval_ms: int = 1_000
    guarantee: str = "at_least_once"
    cache_bytes: int = 10 << 20
    linger_ms: int = 100
    #: Where pystreams leaves a profile of its thread (it has but one then); None: it is not profiled.
    profiles: Path | None = None


@dataclass(frozen=True)
class Command:
    """A process to start in the project's folder, with these variables on top of the environment."""

    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Peer(Protocol):
    """A library that can do some of the jobs."""

    @property
    def name(self) -> str:
        """As the command line and the tables have it."""
        ...

    @property
    def jobs(self) -> tuple[str, ...]:
        """What it can do."""
        ...

    @property
    def scales(self) -> bool:
        """Whether it is measured with several threads (or processes), too."""
        ...

    def why_not(self) -> str | None:
        """What is missing to run it here; None if nothing is."""
        ...

    def build(self, folder: Path) -> None:
        """Make what it needs, below ``folder``, where it stays for the next time."""
        ...

    def commands(self, run: Run) -> list[Command]:
        """The processes of a run."""
        ...


class Pystreams:
    """This project: ``threads`` worker processes, because two threads of Python run no faster than one."""

    name = "pystreams"
    jobs = JOBS
    scales = True

    def why_not(self) -> str | None:
        return None

    def build(self, folder: Path) -> None:
        """There is nothing to build."""

    def commands(self, run: Run) -> list[Command]:
        workers = [] if run.threads == 1 else ["--workers", str(run.threads)]
        module = ["pystreams"]
        if run.profiles is not None:
            module = ["tests.benchmarks.kafka.profiled", str(run.profiles / run.application_id)]
        arguments = [
            *(sys.executable, "-m", *module, "run", f"tests.benchmarks.kafka.jobs:{run.job}", *workers),
            *("--bootstrap-servers", run.bootstrap_servers, "--application-id", run.application_id),
            *("--state-dir", str(run.folder / "state")),
            *("-s", f"commit_interval_ms={run.commit_interval_ms}"),
            *("-s", f"processing_guarantee={run.guarantee}"),
            # A budget for the whole application, as among the threads of a Java process.
            *("-s", f"statestore_cache_max_bytes={run.cache_bytes // run.threads}"),
        ]
        return [Command(arguments, {"BENCH_OUTPUT": run.output})]


class Java:
    """Kafka Streams, ``peers/java``: one JVM with its defaults, ``threads`` stream threads."""

    name = "java"
    jobs = JOBS
    scales = True

    def __init__(self) -> None:
        self._built = Path()

    def why_not(self) -> str | None:
        missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
        return f"it needs {' and '.join(missing)} on the PATH" if missing else None

    def build(self, folder: Path) -> None:
        sources = sorted(path for path in _JAVA_SOURCES.rglob("*") if path.suffix in {".java", ".xml"})
        digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()
        self._built = folder / f"java-{digest}"
        if self._built.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as other:
            partial = Path(other) / "java"
            command = ["mvn", "-q", "-B", "-f", str(_JAVA_SOURCES / "pom.xml"), "package"]
            subprocess.run([*command, f"-Dbench.build={partial}"], check=True, stdout=sys.stderr)
            # Under its own name only once it is whole. Somebody else may have been faster.
            if not self._built.is_dir():
                partial.rename(self._built)

    def commands(self, run: Run) -> list[Command]:
        settings = {
            "application.id": run.application_id,
            "bootstrap.servers": run.bootstrap_servers,
            "state.dir": run.folder / "state",
            "num.stream.threads": run.threads,
            "commit.interval.ms": run.commit_interval_ms,
            "processing.guarantee": run.guarantee,
            "statestore.cache.max.bytes": run.cache_bytes,
            "linger.ms": run.linger_ms,
            "compression.type": "none",
        }
        classpath = f"{self._built / 'bench-java-1.jar'}:{self._built / 'lib'}/*"
        return [
            Command(
                [
                    *("java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath),
                    *("bench.Main", run.job, run.output),
                    *(f"{name}={value}" for name, value in settings.items()),
                ]
            )
        ]


class PlainLoop:
    """The floor: a loop over confluent-kafka and msgspec, without any library."""

    name = "plain"
    jobs = ("stateless",)
    scales = False

    def why_not(self) -> str | None:
        return None

    def build(self, folder: Path) -> None:
        """There is nothing to build."""

    def commands(self, run: Run) -> list[Command]:
        return [
            Command(
                [
                    *(sys.executable, "-m", "tests.benchmarks.peers.plain_loop"),
                    *("--bootstrap-servers", run.bootstrap_servers, "--group", run.application_id),
                    *("--input", run.inputs[0], "--output", run.output),
                    *("--commit-interval-ms", str(run.commit_interval_ms)),
                ]
            )
        ]


PEERS: Mapping[str, Peer] = {peer.name: peer for peer in (Pystreams(), Java(), PlainLoop())}

"""Java on the other side: one process that answers commands with Kafka's own clients (``java/Interop.java``).

Its jars come from Maven, its classes from ``javac``; both are kept in ``.pystreams/kafka``.
"""

from __future__ import annotations

import hashlib
import json
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.java import QUICK
from tests.kafka.server import JARS, VERSION, fetch_jars

SOURCES = Path(__file__).with_name("java")
STREAMS_JARS = JARS.with_name("streams-jars")
CLASSES = JARS.with_name("interop")

ANSWER_TIMEOUT_S = 150.0


def why_not() -> str | None:
    """What is missing to compile and run Java; None if nothing is."""
    wanted = ["java", "javac", *([] if STREAMS_JARS.is_dir() else ["mvn"])]
    missing = [program for program in wanted if shutil.which(program) is None]
    return f"Kafka Streams {VERSION} needs {' and '.join(missing)} on the PATH" if missing else None


def compiled() -> Path:
    """The folder with the compiled classes; made anew whenever the sources have changed."""
    fetch_jars(SOURCES / "pom.xml", STREAMS_JARS)
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = CLASSES / digest
    if not classes.is_dir():
        CLASSES.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CLASSES) as folder:
            partial = Path(folder) / "classes"
            options = [
                f"-J{QUICK[0]}",
                "--release",
                "17",
                "-encoding",
                "UTF-8",
                "-cp",
                f"{STREAMS_JARS}/*",
                "-d",
                str(partial),
            ]
            subprocess.run(["javac", *options, *map(str, sources)], check=True)
            # Under its own name only once it is whole. Somebody else may have been faster.
            if not classes.is_dir():
                partial.rename(classes)
    return classes


class JavaError(RuntimeError):
    """A command failed on Java's side."""


class JavaApp(NamedTuple):
    """A topology that Java has, and how to run it."""

    app: str
    application_id: str
    state_dir: Path
    settings: Mapping[str, Any] = {}


class JavaSide:
    """A Java process towards one cluster. ``ask`` sends a command and gives its answer."""

    def __init__(self, bootstrap_servers: str, log: Path) -> None:
        classpath = f"{compiled()}:{STREAMS_JARS}/*"
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath]
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                ["java", *options, "Interop", bootstrap_servers],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            )
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="java-answers", daemon=True)
        self._reader.start()

    def ask(self, do: str, **arguments: Any) -> Any:
        """Raises ``JavaError`` if the command failed or is not answered in time."""
        assert self._process.stdin is not None
        # Escaped, so that what is not a character (half a surrogate pair) gets there, too.
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        try:
            line = self._answers.get(timeout=ANSWER_TIMEOUT_S)
        except queue.Empty:
            line = ""
        if not line:
            end = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
            raise JavaError(f"no answer to {do}; the end of {self._log}:\n{end}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise JavaError(f"{do}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Have it end with everything that it runs; by force if that takes too long."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        process.stdout.close()

    # Applications

    def start(self, app: str, application_id: str, state_dir: Path, **settings: Any) -> None:
        """Start a topology of ``java/Apps.java``; returns once it runs."""
        self._start([JavaApp(app, application_id, state_dir, settings)])

    def start_runs(self, run: str, apps: Iterable[JavaApp]) -> None:
        """Start topologies of ``java/TakenOver.java``, all at once; returns once they run."""
        self._start(apps, run=run)

    def stop(self, *application_ids: str, leaving: bool = True) -> None:
        """Close applications cleanly, all at once. Without ``leaving``, which is Java's default, they stay members of
        their groups until their sessions are over."""
        stopped = self.ask("stop", ids=application_ids, leaving=leaving)
        assert stopped == [True] * len(application_ids)

    def _start(self, apps: Iterable[JavaApp], **told: Any) -> None:
        wanted = [
            {"app": app, "id": application_id, "state_dir": str(path), "settings": settings, **told}
            for app, application_id, path, settings in apps
        ]
        for application_id, state in self.ask("start", apps=wanted).items():
            if state["state"] != "RUNNING":
                raise JavaError(f"{application_id} is {state['state']}: {state['failure']}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")  # it has ended

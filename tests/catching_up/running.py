"""Runs a trial on a log, as it says: in this process, or in one or several that are killed; gives what comes out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pystreams.backfill.api import backfill
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource
from pystreams.runtime.streams import Streams
from tests.broker.following import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.catching_up.comparing import compare
from tests.catching_up.programs import NAME, application
from tests.catching_up.reference import arrived, expected
from tests.catching_up.trials import LEFT, OUT, RIGHT, ROWS, Event, History, Trial, two_sources
from tests.catching_up.worker import FOLDER, TRIAL, Seen
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, Log, Read

ROOT = Path(__file__).resolve().parents[2]

#: The session of a process that nobody kills.
_SESSION_MS = 45_000

#: Who has not ended after this long hangs.
_DEADLINE_S = 180.0


def check(trial: Trial, log: Log, *, before_outage: Callable[[Trial, Log], None] | None = None) -> None:
    """Run a trial on an empty log, and compare. Raises ``AssertionError``, which says how to do it again.

    ``before_outage`` processes what comes before an outage; None: the application does, until it has caught up.
    """
    try:
        # On Kafka at least once, what was not committed when a process was killed is done again.
        compare(
            expected(trial),
            outcome(trial, log, before_outage or _run),
            again=trial.run.log == "kafka" and not trial.run.exactly_once and bool(trial.run.kills),
        )
    except AssertionError as difference:
        raise AssertionError(f"{trial}\n{difference}") from None


def outcome(trial: Trial, log: Log, before_outage: Callable[[Trial, Log], None]) -> list[Read]:
    """What the application of a trial leaves in its output, partition by partition."""
    inputs = {LEFT: trial.left}
    if two_sources(trial):
        inputs[RIGHT] = trial.right
    if any(trial.rows):
        inputs[ROWS] = trial.rows
    log.create(*inputs, OUT, partitions=len(trial.left))
    whole = {topic: [len(events) for events in history] for topic, history in inputs.items()}
    before = dict.fromkeys(inputs, [0] * len(trial.left))
    if trial.run.outage_ms is not None:
        until = {topic: _before(history, trial.run.outage_ms) for topic, history in inputs.items()}
        _write(log, inputs, before, until)
        before_outage(trial, log)
        before = until
    _write(log, inputs, before, whole)
    _run(trial, log)
    return log.read(OUT, key=str, value=str)


def _before(history: History, moment_ms: int) -> list[int]:
    """How many records of each partition come before a moment."""
    return [sum(rec.moment < moment_ms for rec in recs) for recs in arrived(history).values()]


def _write(
    log: Log, inputs: Mapping[str, History], begin: Mapping[str, list[int]], end: Mapping[str, list[int]]
) -> None:
    for topic, history in inputs.items():
        for partition, events in enumerate(history):
            part: list[Event] = events[begin[topic][partition] : end[topic][partition]]
            records = [(event.key, event.id or None, event.time) for event in part]
            log.write(topic, records, value=str, partition=partition)


def _run(trial: Trial, log: Log) -> None:
    """Until it has caught up."""
    if trial.run.workers == 1 and not trial.run.kills:
        # At least once on Kafka, a member that loses its session on a busy machine does its last work again.
        broker = log.broker_with(session_timeout_ms=_SESSION_MS) if isinstance(log, Cluster) else log.broker
        Streams(
            application(trial, Seen(trial), state_dir=log.path / "state", **_settings(trial)), broker=broker
        ).run(until_caught_up=True)
    else:
        _run_processes(trial, log)


def _settings(trial: Trial) -> dict[str, Any]:
    return {
        "num_stream_threads": trial.run.threads,
        "commit_interval_ms": trial.run.commit_interval_ms,
        "statestore_cache_max_bytes": trial.run.cache_bytes,
        "poll_ms": 10,
    }


def backfill_and_hand_over(trial: Trial, log: Log) -> None:
    """Compute what the topics hold, with its output, so that the application goes on from there."""
    app = application(trial, Seen(trial), state_dir=log.path / "state", **_settings(trial))
    result = backfill(app, sources=EmbeddedSource(str(log.path / "log.db")), staging=log.path / "staging")
    emit(result, log.broker)
    hand_over(result, log.broker)


def _run_processes(trial: Trial, log: Log) -> None:
    """As users run it, again and again while it is killed."""
    (log.path / TRIAL).write_bytes(msgspec.json.encode(trial))
    settings = _settings(trial)
    place = ["--embedded-log", str(log.path / "log.db")]
    if (servers := getattr(log, "bootstrap_servers", None)) is not None:
        place = ["--bootstrap-servers", servers]
        settings |= {"session_timeout_ms": SESSION_TIMEOUT_MS, "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS}
    if trial.run.exactly_once:
        settings |= {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": 60_000}
    command = [sys.executable, "-m", "pystreams", "run", "tests.catching_up.worker:app", *place]
    command += ["--until-caught-up", "--state-dir", str(log.path / "state")]
    command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command += ["--workers", str(trial.run.workers)] if trial.run.workers > 1 else []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1", FOLDER: str(log.path)}
    output = log.path / "output.txt"
    for _ in range(len(trial.run.kills) + 1):
        with output.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=log.path, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        code = _ended(process, output)
        if code == 0:
            return
        text = output.read_text(encoding="utf-8", errors="replace")[-3_000:]
        assert code == -signal.SIGKILL, f"{NAME} ended with {code}:\n{text}"
        if hasattr(log, "remove_members"):
            # Without waiting until the session of the one that was killed is over.
            log.remove_members(NAME)
        if trial.run.wiped:
            shutil.rmtree(log.path / "state", ignore_errors=True)
    raise AssertionError("killed more often than was meant")


def _ended(process: subprocess.Popen[bytes], output: Path) -> int:
    """Wait for its end. Who hangs prints its stacks."""
    try:
        return process.wait(_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        process.wait(TIMEOUT_S)
        text = output.read_text(encoding="utf-8", errors="replace")[-5_000:]
        raise AssertionError(f"does not end within {_DEADLINE_S:g} s:\n{text}") from None

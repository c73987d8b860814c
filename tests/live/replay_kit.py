"""Replays of dead letters in processes of their own, which kill themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.live.support import Log

ROOT = Path(__file__).resolve().parents[2]

#: Runs a command with small transactions, in a process that kills itself at a commit: before it is sent, when all
#: records of the transaction are in the log, or after it.
KILLED = """
import os, signal, sys
from pystreams.broker.embedded.transactions import EmbeddedTransactionalProducer
from pystreams.broker.kafka.transactions import KafkaTransactionalProducer
from pystreams.cli.commands.dlq import writing
from pystreams.cli.main import main

writing.TRANSACTION_RECORDS = 7
when, left = sys.argv[1], int(sys.argv[2])

def killing(commit):
    def commit_or_die(self):
        global left
        left -= 1
        if left == 0 and when == "before":
            if isinstance(self, KafkaTransactionalProducer):
                assert self._client.flush(30) == 0
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return commit_or_die

for producer in (EmbeddedTransactionalProducer, KafkaTransactionalProducer):
    producer.commit = killing(producer.commit)
main(sys.argv[3:])
"""


def replay(log: Log, *options: str, kill: tuple[str, int] = ("never", 0)) -> int:
    """``pystreams dlq replay dead`` in a process of its own; its exit code, or the signal that killed it."""
    servers = getattr(log, "bootstrap_servers", None)
    place = ["--bootstrap-servers", servers] if servers else ["--embedded-log", str(log.path / "log.db")]
    command = ["dlq", "replay", "dead", "--yes", *options, *place]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, kill[0], str(kill[1]), *command],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode

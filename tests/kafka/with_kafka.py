"""Runs a command with a Kafka to work on: one that is there, or else one that is started for it and stopped after it.

    python -m tests.kafka.with_kafka pystreams topics list

There is one if PYSTREAMS_BOOTSTRAP_SERVERS names it, or if ``make kafka`` runs. One that is started has the data of
``make kafka``: what the command leaves can be looked at later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tests.kafka.server import ROOT, VERSION, KafkaServer, KafkaServerError, interrupt_on_signals, why_not

SERVERS = "PYSTREAMS_BOOTSTRAP_SERVERS"
MAKE_KAFKA = ("127.0.0.1", 9092)


@contextmanager
def some_kafka() -> Iterator[str]:
    """Its bootstrap servers. Exits with the reason where none can be had."""
    named = os.environ.get(SERVERS)
    if named:
        yield named
        return
    if _answers():
        yield "{}:{}".format(*MAKE_KAFKA)
        return
    reason = why_not()
    if reason is not None:
        sys.exit(
            f"There is no Kafka to work on: {SERVERS} names none, nothing answers at {MAKE_KAFKA[0]}:{MAKE_KAFKA[1]},"
            f" and none can be started: {reason}."
        )
    server = KafkaServer(ROOT / ".pystreams" / "kafka" / "data")
    print(f"Starting Apache Kafka {VERSION} ...", flush=True)
    try:
        server.start()
        yield server.bootstrap_servers
    finally:
        with contextlib.suppress(OSError):  # the terminal may be closed
            print("Stopping Kafka ...", flush=True)
        server.stop()


def _answers() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(MAKE_KAFKA) == 0


def run(command: list[str], servers: str) -> int:
    """Its exit code, as a shell has it. What stops us stops the command and what it has started, and is waited for."""
    try:
        process = subprocess.Popen(command, env={**os.environ, SERVERS: servers}, process_group=0)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error}")

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.killpg(process.pid, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = process.wait()
    return code if code >= 0 else 128 - code


def main() -> None:
    """Exit as the command does."""
    interrupt_on_signals()
    try:
        with some_kafka() as servers:
            code = run(sys.argv[1:], servers)
    except KafkaServerError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code)


if __name__ == "__main__":
    main()

"""``make kafka`` and ``make demo KAFKA=1``: what they start ends with them, however they end, and mistakes are told."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import ROOT
from tests.kafka.server import KafkaServer, free_port
from tests.linux import alive, children
from tests.live.support import eventually

Run = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a module of this folder; its output is one stream."""
    processes: list[subprocess.Popen[str]] = []

    def run(module: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.kafka.{module}", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        with process:
            process.kill()


def kafka(server: KafkaServer, run: Run, folder: Path) -> tuple[subprocess.Popen[str], int]:
    """``make kafka``, and the process id of the Kafka that it has started. ``server`` knows whether one can be had."""
    process = run("server", "--port", str(free_port()), "--data", str(folder))
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"Kafka listens on .* \(process (\d+)\)", line)
        if found is not None:
            return process, int(found[1])
    raise AssertionError(f"it ended with {process.wait()}")


def test_no_kafka_outlives_whoever_started_it(server, run, tmp_path):
    process, pid = kafka(server, run, tmp_path)
    process.kill()
    process.wait()
    eventually(lambda: not alive(pid), "Kafka is gone")


def test_a_kafka_that_dies_ends_make_kafka_with_the_reason(server, run, tmp_path):
    process, pid = kafka(server, run, tmp_path)
    os.kill(pid, signal.SIGKILL)
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"Kafka has ended; the end of {tmp_path}/server.log" in text
    assert "Traceback" not in text


def test_a_port_that_is_taken_is_reported(server, run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = run("server", "--port", str(port), "--data", str(tmp_path))
        text, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"Kafka cannot listen on 127.0.0.1:{port}: somebody else does" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("module", ["server", "with_kafka"])
def test_a_machine_without_java_is_reported(run, tmp_path, module):
    nothing = {"PATH": str(tmp_path), "PYSTREAMS_BOOTSTRAP_SERVERS": ""}
    if module == "with_kafka":
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 9092)) == 0:
                pytest.skip("there is a Kafka at 127.0.0.1:9092")
    process = run(module, **nothing)
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Kafka needs java" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_was_given_a_kafka_ends_with_whoever_gave_it(run, number):
    process = run(
        "with_kafka", "sh", "-ec", "echo at work; sleep 600; echo done", PYSTREAMS_BOOTSTRAP_SERVERS="here:1"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    (shell,) = children(process.pid)
    (sleep,) = eventually(lambda: children(shell))
    process.send_signal(number)
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "done" not in text
    assert "Traceback" not in text
    assert not alive(sleep)

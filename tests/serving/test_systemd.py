"""A unit of ``Type=notify`` is ready when the application is, and its watchdog sees a sign of life."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.clock import SystemClock
from pystreams.runtime.health import Health
from pystreams.serving.systemd import SystemdNotifier
from tests.cli.workers.workers_kit import WorkersRun
from tests.live.support import Log, eventually

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).to("out")
"""


class Systemd:
    """The socket that systemd listens on, and what came."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{path[1:]}" if path.startswith("@") else path)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while message := self._socket.recv(4096).decode():
            self.heard.append(message)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def systemd(request, tmp_path: Path) -> Iterator[Systemd]:
    name = f"pystreams-{os.urandom(8).hex()}"
    opened = Systemd(str(tmp_path / name) if request.param == "file" else f"@{name}")
    yield opened
    opened.close()


class Patient:
    """An application whose health the test sets."""

    def __init__(self) -> None:
        self.now = Health(live=True, ready=False, reasons=("t restores 0_1",))
        self.error: Exception | None = None
        self.looks = 0

    def health(self) -> Health:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.now

    def samples(self):
        return {}


def test_ready_is_said_once_and_until_then_systemd_is_asked_to_wait(systemd):
    patient = Patient()
    with SystemdNotifier(patient, {"NOTIFY_SOCKET": systemd.path}, SystemClock()):
        eventually(lambda: systemd.heard[:2] == ["STATUS=t restores 0_1", "EXTEND_TIMEOUT_USEC=30000000"])
        patient.now = Health(live=True, ready=True)
        eventually(lambda: "READY=1" in systemd.heard)
    eventually(lambda: systemd.heard[-3:] == ["STATUS=ready", "READY=1", "STOPPING=1"])


def test_the_watchdog_gets_its_sign_while_the_application_is_live(systemd):
    patient = Patient()
    environment = {"NOTIFY_SOCKET": systemd.path, "WATCHDOG_USEC": "40000", "WATCHDOG_PID": str(os.getpid())}
    with SystemdNotifier(patient, environment, SystemClock()):
        eventually(lambda: systemd.heard.count("WATCHDOG=1") > 3)
        patient.now = Health(live=False, ready=False, reasons=("t is stuck",))
        eventually(lambda: "STATUS=t is stuck" in systemd.heard)
        # A sign is due at every second look at the latest.
        looks = patient.looks
        eventually(lambda: patient.looks > looks + 10)
    eventually(lambda: systemd.heard[-1] == "STOPPING=1")
    assert "WATCHDOG=1" not in systemd.heard[systemd.heard.index("STATUS=t is stuck") :]


def test_one_that_stops_says_so_at_once_and_gets_the_time_that_it_needs(systemd):
    patient = Patient()
    with SystemdNotifier(patient, {"NOTIFY_SOCKET": systemd.path}, SystemClock()):
        patient.now = Health(live=True, ready=True)
        eventually(lambda: "READY=1" in systemd.heard)
        patient.now = Health(live=True, ready=False, reasons=("the client is closing",), stopping=True)
        eventually(lambda: systemd.heard[-2:] == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=30000000"])
    assert systemd.heard.count("STOPPING=1") == 1


def test_a_health_that_cannot_be_had_or_said_does_not_end_the_signs_of_life(systemd, caplog):
    patient = Patient()
    environment = {"NOTIFY_SOCKET": systemd.path, "WATCHDOG_USEC": "40000"}
    with SystemdNotifier(patient, environment, SystemClock()):
        eventually(lambda: "WATCHDOG=1" in systemd.heard)
        patient.error = ValueError("odd")
        eventually(lambda: "ValueError: odd" in caplog.text)
        patient.error = None
        patient.now = Health(live=True, ready=False, reasons=("\udcff is stuck",))
        eventually(lambda: "STATUS=? is stuck" in systemd.heard)
        signs = systemd.heard.count("WATCHDOG=1")
        eventually(lambda: systemd.heard.count("WATCHDOG=1") > signs)


def test_the_watchdog_of_another_process_is_none_of_ours(systemd):
    environment = {"NOTIFY_SOCKET": systemd.path, "WATCHDOG_USEC": "40000", "WATCHDOG_PID": "1"}
    with SystemdNotifier(Patient(), environment, SystemClock()):
        eventually(lambda: systemd.heard)
    eventually(lambda: systemd.heard[-1] == "STOPPING=1")
    assert "WATCHDOG=1" not in systemd.heard


def test_a_socket_that_is_gone_does_not_end_the_application(tmp_path, caplog):
    # The watchdog has it try again and again.
    environment = {"NOTIFY_SOCKET": str(tmp_path / "none"), "WATCHDOG_USEC": "20000"}
    patient = Patient()
    with SystemdNotifier(patient, environment, SystemClock()):
        eventually(lambda: patient.looks > 5)
    assert caplog.text.count("systemd was not notified") == 1


@pytest.mark.live
@pytest.mark.parametrize("workers", [[], ["--workers", "1"]], ids=["alone", "workers"])
def test_a_run_under_systemd_says_that_it_is_ready_and_that_it_stops(tmp_path, workers):
    (tmp_path / "copying.py").write_text(COPYING, encoding="utf-8")
    (tmp_path / ".pystreams").mkdir()
    log = Log(tmp_path / ".pystreams")
    log.create("in", "out")
    systemd = Systemd(str(tmp_path / "notify"))
    run = WorkersRun(tmp_path, "copying", *workers, NOTIFY_SOCKET=systemd.path)
    try:
        eventually(lambda: "READY=1" in systemd.heard)
        run.send(signal.SIGTERM)
        run.ends_with(0)
        eventually(lambda: systemd.heard.count("STOPPING=1") == 1)
    finally:
        run.close()
        systemd.close()
        log.close()

"""Workers report their progress to the driver; nothing waits for a report, and those of strangers do not count."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from pystreams.backfill.workers.progress import Reporter, listening
from tests.live.support import eventually


def test_reports_of_others_are_not_heard() -> None:
    heard: list[tuple[int, int, bool]] = []
    with listening("127.0.0.1", "127.0.0.1", lambda *told: heard.append(told)) as reporter:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            assert reporter.address is not None
            stranger.sendto(bytes(29), reporter.address)
            stranger.sendto(b"", reporter.address)
        task = reporter.of(3)
        task.processed(7)
        task.finished()
        eventually(lambda: heard == [(3, 7, True)])
    assert "token" not in repr(reporter)


def test_it_is_reached_under_another_name_than_it_listens_at() -> None:
    heard: list[tuple[int, int, bool]] = []
    with listening("0.0.0.0", "localhost", lambda *told: heard.append(told)) as reporter:
        assert reporter.address is not None
        assert reporter.address[0] == "localhost"
        reporter.of(1).finished()
        eventually(lambda: heard == [(1, 0, True)])


def test_without_an_address_to_listen_at_it_goes_on_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Of the range for documentation: no machine has it.
    for _ in range(2):
        with listening("192.0.2.1", "driver-service", lambda *_: None) as reporter:
            assert reporter.address is None
            task = reporter.of(0)
            task.processed(7)
            task.finished()
    assert caplog.text.count("no live progress") == 1
    assert "192.0.2.1" in caplog.text


def test_a_signal_in_the_moment_of_its_start_ends_it_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error of its thread would fail this test."""
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt), listening("127.0.0.1", "127.0.0.1", lambda *_: None):
        pass
    (thread,) = started
    eventually(lambda: not thread.is_alive())


def test_a_driver_that_no_worker_finds_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unknown(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    task = Reporter(("driver-service", 1), b"token").of(0)
    for _ in range(3):
        task.finished()
    assert asked == ["driver-service"]


def test_the_end_waits_for_no_datagram(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that tells the end may be lost: then nobody must wait for it."""
    monkeypatch.setattr(socket.socket, "sendto", lambda *_: 0)
    with listening("127.0.0.1", "127.0.0.1", lambda *_: None):
        pass

"""Threads share a log: whatever one of them does, the others lose nothing, and the process lives."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from pystreams.broker.embedded.producer import EmbeddedProducer
from pystreams.errors import BrokerError
from pystreams.log import open_log

#: Prints "closed" in each thread and exits with 0, unless SQLite takes the process down.
CLOSED_WHILE_READ = """
import threading
from pystreams import open_log
from pystreams.errors import BrokerError

open_log().create_topic("t")
for _ in range(8):
    with open_log() as log:
        log.produce_many("t", (("k", "v" * 100) for _ in range(20_000)))
        reading = threading.Event()

        def read():
            try:
                while True:
                    for record in log.consume("t"):
                        reading.set()
            except BrokerError as error:
                print("closed")

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        reading.wait()
        log.close()
        for thread in threads:
            thread.join()
"""


def in_threads(work: Callable[[], None], count: int = 2) -> list[threading.Thread]:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_a_topic_is_deleted_while_others_are_written_to(log):
    log.create_topic("t", config={"retention.ms": -1})
    done, written, failures = threading.Event(), [], []

    def write() -> None:
        try:
            while not done.is_set():
                log.produce("t", "k", "v")
                written.append(1)
        except Exception as error:  # noqa: BLE001 - none of any kind
            failures.append(error)

    threads = in_threads(write)
    for _ in range(8):
        log.create_topic("u")
        log.delete_topic("u")
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(1 for _ in log.consume("t")) == len(written) > 0


def test_who_produces_while_another_closes_the_log_gets_an_error_or_finds_the_record(folder):
    for _ in range(8):
        with open_log() as log:
            log.create_topic("t", if_not_exists=True)
            begun, written, failures = threading.Event(), [], []

            def write() -> None:
                try:
                    while True:
                        log.produce("t", "k", "v")
                        written.append(1)  # noqa: B023 - the thread ends in the same round
                        begun.set()  # noqa: B023
                except BrokerError as error:
                    failures.append(error)  # noqa: B023

            threads = in_threads(write)
            begun.wait()
            log.close()
            for thread in threads:
                thread.join()
        assert ["The log is closed" in str(error) for error in failures] == [True, True]
        with open_log() as log:
            assert log.describe_topic("t").records == len(written)
            log.delete_topic("t")


def test_a_log_may_be_closed_while_threads_read_it(folder):
    ended = subprocess.run(
        [sys.executable, "-c", CLOSED_WHILE_READ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("closed") == 16


def test_what_an_interrupted_commit_leaves_is_written_when_the_log_is_closed(folder, monkeypatch):
    commit = EmbeddedProducer.commit

    def interrupted(self, offsets, member):
        monkeypatch.setattr(EmbeddedProducer, "commit", commit)
        raise KeyboardInterrupt

    with open_log() as log:
        log.create_topic("t")
        monkeypatch.setattr(EmbeddedProducer, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.produce_many("t", [("k", str(number)) for number in range(3)])
    with open_log() as log:
        assert [record.value for record in log.consume("t", value=str)] == ["0", "1", "2"]

"""What can be wrong with the log's file, and what is said about it."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.errors import BrokerError, BrokerUnavailableError, ConfigError
from tests.unit.broker.log_helpers import create, values, write


def test_directories_are_created_and_the_log_is_found_again(tmp_path):
    path = tmp_path / "a" / "b" / "log.db"
    broker = EmbeddedBroker(path)
    assert broker.description == f"embedded log at {path}"
    assert broker.transactional
    create(broker)
    write(broker, [(b"k", b"v", 1)])
    broker.close()
    again = EmbeddedBroker(path)
    assert values(again) == [b"v"]
    again.close()


def test_anyone_can_look_into_the_file(broker, tmp_path):
    create(broker)
    write(broker, [(b"k", b"v", 1)] * 7)
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        rows = connection.execute(
            "SELECT name, partition, base_offset, last_offset, record_count FROM topics"
            " JOIN partitions USING (topic_id) JOIN batches USING (partition_id)"
        ).fetchall()
    assert rows == [("t", 0, 0, 6, 7)]


def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "log.db"
    path.write_text("dear diary, " * 1000)
    with pytest.raises(ConfigError, match=r"(?s)not an SQLite database.*log\.db"):
        EmbeddedBroker(path)
    assert path.read_text() == "dear diary, " * 1000


def test_somebody_elses_database_is_refused(tmp_path):
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE diary (entry TEXT)")
    with pytest.raises(ConfigError, match="not an embedded log"):
        EmbeddedBroker(path)


def test_a_newer_schema_is_refused(broker, tmp_path):
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match="schema version 99"):
        EmbeddedBroker(tmp_path / "log.db")


def test_a_path_that_cannot_hold_a_log_is_a_config_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be created"):
        EmbeddedBroker(tmp_path / "file" / "log.db")
    (tmp_path / "directory").mkdir()
    with pytest.raises(ConfigError, match="cannot be opened"):
        EmbeddedBroker(tmp_path / "directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_directory_is_a_config_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="cannot be created"):
        EmbeddedBroker(tmp_path / "log.db")
    tmp_path.chmod(0o700)


def test_a_full_disk_fails_the_commit_and_loses_nothing(broker):
    create(broker)
    write(broker, [(b"k", b"before", 1)])
    producer = broker.producer("test", "test")
    # SQLite's own bound on the file answers as a full disk does.
    pages = producer._database.rows("PRAGMA page_count")[0][0]
    producer._database.rows(f"PRAGMA max_page_count = {pages + 2}")
    for _ in range(10):
        producer.send("t", 0, b"k", b"x" * 50_000, 1, ())
    with pytest.raises(BrokerError, match="disk is full"):
        producer.commit({}, None)
    assert values(broker) == [b"before"]
    producer._database.rows("PRAGMA max_page_count = 1000000")
    producer.commit({}, None)
    assert len(values(broker)) == 11
    producer.close()


def test_a_log_that_is_locked_for_too_long_is_unavailable(tmp_path):
    broker = EmbeddedBroker(tmp_path / "log.db", busy_timeout_ms=50)
    create(broker)
    producer = broker.producer("test", "test")
    producer.send("t", 0, b"k", b"v", 1, ())
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(BrokerUnavailableError, match="locked by another process"):
            producer.commit({}, None)
        connection.execute("ROLLBACK")
    producer.commit({}, None)
    assert values(broker) == [b"v"]
    producer.close()
    broker.close()


def test_use_after_close_is_said_plainly(broker):
    consumer = broker.consumer("test")
    broker.close()
    with pytest.raises(BrokerError, match="used after it was closed"):
        consumer.poll(0)


def test_several_who_create_the_same_log_at_once_get_the_same_log(tmp_path):
    failures = []

    def open_and_close() -> None:
        try:
            EmbeddedBroker(tmp_path / "log.db").close()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

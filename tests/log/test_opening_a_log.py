"""``open_log`` opens the log that is meant, and says what is wrong with what it is given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pystreams import open_log
from pystreams.errors import BrokerError, BrokerUnavailableError, ConfigError

DEFAULT = Path(".pystreams/log.db")


def test_without_arguments_it_is_the_one_that_applications_run_on(folder):
    with open_log() as log:
        log.create_topic("t")
        assert log.topics() == ["t"]
        assert repr(log) == "Log('embedded log at .pystreams/log.db')"
    assert DEFAULT.exists()


def test_looking_into_the_wrong_folder_leaves_no_log_behind(folder):
    with open_log() as log, pytest.raises(BrokerUnavailableError, match="There is no embedded log") as failed:
        log.topics()
    assert failed.value.hint.startswith(
        "create the first topic, and the log with it: log.create_topic(NAME); if"
    )
    assert list(folder.iterdir()) == []


def test_the_environment_names_it_unless_the_program_does(folder, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_EMBEDDED_LOG", "of-environment.db")
    assert "of-environment.db" in open_log().description
    assert "mine.db" in open_log("mine.db").description
    monkeypatch.setenv("PYSTREAMS_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert "mine.db" in open_log("mine.db").description
    with pytest.raises(BrokerUnavailableError, match=r"127\.0\.0\.1:1"):
        open_log()


def test_settings_of_an_application_in_the_environment_do_not_matter(folder, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_DEAD_LETTER_DROPPED_RECORDS", "true")
    open_log().close()


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"path": "x.db", "bootstrap_servers": "127.0.0.1:9092"}, "Both an embedded log and Kafka are given"),
        ({"num_stream_threads": 2}, "num_stream_threads is not a setting of a log"),
        ({"bootstrap_server": "127.0.0.1:9092"}, "did you mean bootstrap_servers"),
        ({"bootstrap_servers": "nowhere"}, "HOST:PORT"),
    ],
)
def test_wrong_settings_are_reported(folder, settings, said):
    with pytest.raises(ConfigError, match=said):
        open_log(**settings)


def test_a_closed_log_says_that_it_is_closed(log):
    log.create_topic("t")
    log.close()
    log.close()
    with pytest.raises(BrokerError, match="The log is closed"):
        log.topics()
    with pytest.raises(BrokerError, match="The log is closed"):
        log.produce("t", "x")


def test_what_was_produced_is_written_when_the_program_ends_without_closing_it(folder):
    program = "from pystreams import open_log; log = open_log(); log.create_topic('t'); log.produce('t', 'x')"
    subprocess.run([sys.executable, "-c", program], check=True)
    with open_log() as log:
        assert [record.value for record in log.consume("t", value=str)] == ["x"]


def test_opening_a_log_loads_neither_kafka_nor_rocksdb(folder):
    program = (
        "import sys; from pystreams import open_log\n"
        "with open_log() as log:\n"
        "    log.create_topic('t'); log.produce('t', 'x'); list(log.consume('t'))\n"
        "print(*{'rocksdict', 'confluent_kafka', 'kafka', 'rich', 'typer', 'pyarrow', 'pandas'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == ""

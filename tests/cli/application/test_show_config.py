"""``run --show-config`` tells what is in force and where it comes from, and runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = (
    "from pystreams import App\n"
    "app = App('s', poll_ms=11, commit_interval_ms=12, max_task_idle_ms=13, producer_compression_type='lz4')\n"
    "app.stream('in').to('out')\n"
)


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "settings_program.py").write_text(PROGRAM, encoding="utf-8")


@pytest.fixture
def show(pystreams):
    def show(*arguments: str) -> dict[str, tuple[str, str]]:
        shown = pystreams("run", "settings_program", "--show-config", *arguments)
        assert shown.code == 0, shown.err
        return {name: (value, origin) for name, value, origin in (line.split("\t") for line in shown.lines)}

    return show


def test_flags_win_over_the_environment_which_wins_over_the_application(show, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_POLL_MS", "21")
    monkeypatch.setenv("PYSTREAMS_COMMIT_INTERVAL_MS", "22")
    monkeypatch.setenv("PYSTREAMS_NUM_STREAM_THREADS", "2")
    in_force = show("-s", "poll.ms=31", "--state-dir", "elsewhere")
    assert in_force["poll.ms"] == ("31", "command line")
    assert in_force["state.dir"] == ("elsewhere", "command line")
    assert in_force["commit.interval.ms"] == ("22", "environment")
    assert in_force["num.stream.threads"] == ("2", "environment")
    assert in_force["max.task.idle.ms"] == ("13", "program")
    assert in_force["task.timeout.ms"] == ("300000", "default")
    assert in_force["allow.expired"] == ("false", "default")


def test_on_the_embedded_log_there_are_no_clients_to_show(pystreams, folder):
    shown = pystreams("run", "settings_program", "--show-config")
    assert "compression" not in shown.out
    assert "the embedded log" in shown.err
    assert not (folder / ".pystreams").exists()


def test_on_kafka_the_settings_of_each_client_are_shown_by_javas_names(show, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_PRODUCER_LINGER_MS", "5")
    in_force = show(
        "--bootstrap-servers",
        "broker:9092",
        *("-s", "consumer.fetch.min.bytes=3", "-s", "main_consumer_fetch_min_bytes=4"),
        *("-s", "consumer.session.timeout.ms=60000", "-s", "topic.compression.type=zstd"),
        *("-s", "admin.retry.backoff.ms=7"),
    )
    assert in_force["main.consumer.fetch.min.bytes"] == ("4", "command line")
    assert in_force["restore.consumer.fetch.min.bytes"] == ("3", "command line")
    assert in_force["session.timeout.ms"] == ("60000", "command line")
    assert in_force["topic.compression.type"] == ("zstd", "command line")
    assert in_force["producer.linger.ms"] == ("5", "environment")
    assert in_force["producer.compression.type"] == ("lz4", "program")
    assert in_force["producer.enable.idempotence"] == ("true", "default")
    assert in_force["admin.retry.backoff.ms"] == ("7", "command line")
    assert in_force["producer.retry.backoff.ms"] == ("100", "default")
    assert in_force["request.timeout.ms"] == ("30000", "default")
    assert "producer.request.timeout.ms" not in in_force


def test_secrets_are_hidden_wherever_they_come_from(pystreams, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("PYSTREAMS_ADMIN_SASL_PASSWORD", "hunter3")
    settings = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=alice"]
    shown = pystreams(
        "run",
        "settings_program",
        "--show-config",
        *("--bootstrap-servers", "broker:9092"),
        *(argument for setting in settings for argument in ("-s", setting)),
    )
    assert shown.code == 0
    assert "producer.sasl.password\t[hidden]\tenvironment" in shown.lines
    assert "hunter" not in shown.out + shown.err


def test_a_login_that_is_not_complete_is_reported(pystreams):
    failed = pystreams(
        "run",
        "settings_program",
        "--show-config",
        *("--bootstrap-servers", "broker:9092", "-s", "sasl.username=alice"),
    )
    assert failed.code == 2
    assert "security.protocol is missing" in failed.err


def test_a_program_may_leave_its_password_to_the_environment(folder, pystreams, monkeypatch):
    (folder / "login_program.py").write_text(
        "from pystreams import App\n"
        "app = App('s', bootstrap_servers='broker:9092', security_protocol='SASL_SSL', sasl_mechanism='PLAIN',\n"
        "          sasl_username='alice')\n"
        "app.stream('in').to('out')\n",
        encoding="utf-8",
    )
    assert pystreams("run", "login_program", "--show-config").code == 2
    monkeypatch.setenv("PYSTREAMS_SASL_PASSWORD", "hunter2")
    assert pystreams("run", "login_program", "--show-config").code == 0

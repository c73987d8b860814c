"""``pystreams doctor`` examines an application on a real Kafka."""

from __future__ import annotations

import re

import pytest

from pystreams.cli.commands.doctor import log_checks
from pystreams.cli.main import main
from tests.cli.wordcount_kit import WORDCOUNT
from tests.kafka.support import Cluster


@pytest.fixture
def folder(cluster: Cluster, tmp_path, monkeypatch: pytest.MonkeyPatch):
    """The program on the cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYSTREAMS_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    (tmp_path / "examined_on_kafka.py").write_text(WORDCOUNT.format(id="examined"), encoding="utf-8")
    return tmp_path


def examined(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "examined_on_kafka", *arguments])
    return int(ended.value.code or 0), capfd.readouterr().out


def test_addresses_brokers_versions_and_topics_are_examined(folder, cluster: Cluster, capfd):
    cluster.create("lines", "word-counts", partitions=2)
    addresses = f"{cluster.bootstrap_servers},127.0.0.1:1"
    code, out = examined(capfd, "--bootstrap-servers", addresses)
    assert code == 0, out
    assert f"ok addresses: connected to {cluster.bootstrap_servers} in" in out
    assert "!  addresses: cannot be reached: 127.0.0.1:1" in out
    assert "1 broker, Kafka" in out
    assert "!  log: with less than three brokers" in out
    assert "ok topics:" in out
    assert set(cluster.admin.partition_counts()) == {"lines", "word-counts"}


def test_the_clock_of_this_machine_is_compared_with_the_clusters(
    folder, cluster: Cluster, capfd, monkeypatch
):
    cluster.create("lines", "word-counts")
    code, out = examined(capfd)
    assert "ok clocks: this machine's clock and the cluster's are less than 2 s apart" in out
    assert code == 0
    right = log_checks.SystemClock.now_ms
    monkeypatch.setattr(log_checks.SystemClock, "now_ms", lambda clock: right(clock) + 90_000)
    code, out = examined(capfd)
    assert re.search(
        r"^!  clocks: this machine's clock is (8[5-9]|90) s ahead of the cluster's", out, re.MULTILINE
    )
    # A wrong clock harms, but it does not keep the application from starting.
    assert code == 0
    monkeypatch.setattr(log_checks.SystemClock, "now_ms", lambda clock: right(clock) - 90_000)
    assert re.search(
        r"^!  clocks: this machine's clock is \d+ s behind the cluster's", examined(capfd)[1], re.MULTILINE
    )


def test_a_missing_topic_is_named(folder, cluster: Cluster, capfd):
    cluster.create("word-counts")
    code, out = examined(capfd)
    assert code == 1
    assert "x  topics:" in out
    assert "pystreams topics create lines" in out

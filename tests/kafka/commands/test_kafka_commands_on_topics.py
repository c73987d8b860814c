"""Commands copy topics of a real Kafka, equal to the byte, and make those that an application lacks."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from pystreams import open_log
from pystreams.cli.main import main
from tests.cli.wordcount_kit import WORDCOUNT
from tests.kafka.support import Cluster

Command = Callable[..., str]


@pytest.fixture
def pystreams(
    cluster: Cluster, capfd: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs a command, which has to succeed, and gives its standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYSTREAMS_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)

    def run(*arguments: str, stdin: str = "") -> str:
        capfd.readouterr()
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capfd.readouterr()
        assert ended.value.code == 0, captured.err
        return captured.out

    return run


def test_a_topic_is_copied_by_the_commands(cluster: Cluster, pystreams: Command):
    pystreams("topics", "create", "one", "two", "-p", "3", "-c", "retention.ms=-1")
    pystreams("topics", "create", "one", "two", "--if-not-exists")
    with open_log(bootstrap_servers=cluster.bootstrap_servers) as log:
        for number in range(1, 40):
            value = None if number % 7 == 0 else bytes([number, 255 - number]) * (number % 5)
            headers = (("h", None), ("b", bytes([number, 200]))) if number % 3 == 0 else ()
            place = {"timestamp": number * 1000, "partition": number % 3}
            log.produce("one", str(number), value, headers=headers, **place)
        log.flush()
        pystreams("produce", "two", "--json", stdin=pystreams("consume", "one", "--json"))
        read = {topic: sorted(record[1:] for record in log.consume(topic)) for topic in ("one", "two")}
    assert len(read["one"]) == 39
    assert read["two"] == read["one"]
    pystreams("topics", "delete", "one", "two", "--yes")
    assert pystreams("topics", "list") == ""


def test_an_application_runs_with_topics_that_it_made(pystreams: Command, tmp_path):
    (tmp_path / "counting_on_kafka.py").write_text(WORDCOUNT.format(id="counting"), encoding="utf-8")
    options = ("--create-topics", "--partitions", "2", "--until-caught-up")
    pystreams("run", "counting_on_kafka", *options)
    pystreams("produce", "lines", stdin="to be or not to be\n")
    pystreams("run", "counting_on_kafka", *options)
    rows = [line.split("\t") for line in pystreams("consume", "word-counts").splitlines()]
    assert {key: value for _, key, value in rows} == {"to": "2", "be": "2", "or": "1", "not": "1"}
    rows = [line.split("\t")[:2] for line in pystreams("topics", "list").splitlines()]
    assert rows == [["lines", "2"], ["word-counts", "2"]]

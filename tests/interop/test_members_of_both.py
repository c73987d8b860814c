"""One group, one application: who does not fit is refused by name, and those at work are not disturbed."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams import App, Streams
from pystreams.errors import StreamsError
from tests.interop.java_side import JavaSide
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.live.support import caught_up, eventually

ROOT = Path(__file__).parents[2]

PROGRAM = """
from pystreams import App

app = App("shared")
values = app.stream("in", key=str, value=int)
{steps}
"""
COUNTING = 'values.group_by_key().count(name="counts").to_stream().to("out")'
#: Another topology with the same stores: whichever runs first, a start loses nothing, so that the group itself refuses.
MAPPING = 'values.map_values(abs).group_by_key().count(name="counts").to_stream().to("out")'


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Those still alive are stopped at the end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def run_program(cluster: Cluster, name: str, steps: str) -> subprocess.Popen[str]:
    """``pystreams run`` of a program of these steps, as a user starts it."""
    folder = cluster.path / name
    folder.mkdir()
    (folder / f"{name}.py").write_text(PROGRAM.format(steps=steps), encoding="utf-8")
    settings = {
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "commit_interval_ms": 100,
    }
    pairs = [part for setting, value in settings.items() for part in ("-s", f"{setting}={value}")]
    options = ["--bootstrap-servers", cluster.bootstrap_servers, "--state-dir", str(folder / "state")]
    return subprocess.Popen(
        [sys.executable, "-m", "pystreams", "run", name, *pairs, *options],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def counts(cluster: Cluster) -> App:
    app = cluster.app("shared")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def counting(cluster: Cluster) -> Streams:
    return cluster.start(counts(cluster))


def create(cluster: Cluster) -> None:
    cluster.create("in", "out", partitions=2)
    write(cluster)


def write(cluster: Cluster) -> None:
    cluster.write("in", [(str(i % 10), 1, i + 1) for i in range(100)])


def test_of_two_topologies_that_start_at_once_one_runs_and_the_other_is_refused_by_name(
    cluster: Cluster, processes: list[subprocess.Popen[str]]
):
    create(cluster)
    processes += [run_program(cluster, "counts", COUNTING), run_program(cluster, "mapped", MAPPING)]
    eventually(lambda: any(p.poll() is not None for p in processes), "one ends")
    (refused,) = [p for p in processes if p.poll() is not None]
    (good,) = [p for p in processes if p is not refused]
    said, _ = refused.communicate(timeout=10)
    assert refused.returncode != 0
    assert "the group refuses this member" in said
    assert "fingerprint" in said or "topology" in said
    assert "Traceback" not in said
    eventually(lambda: cluster.all_committed("shared", "in"), "the other one works")
    write(cluster)
    eventually(lambda: cluster.all_committed("shared", "in"), "and goes on")
    assert good.poll() is None
    assert set(cluster.table("out").values()) == {20}


def test_java_cannot_join_us_and_does_not_disturb_us(cluster: Cluster, java: JavaSide):
    create(cluster)
    streams = counting(cluster)
    caught_up(streams)
    before = cluster.admin.group_members("shared")
    with pytest.raises(RuntimeError, match="InconsistentGroupProtocol"):
        java.start("windows", "shared", cluster.path / "java")
    java.stop("shared")
    write(cluster)
    caught_up(streams)
    assert cluster.admin.group_members("shared") == before
    assert set(cluster.table("out").values()) == {20}


def refusal(streams: Streams) -> str:
    eventually(lambda: streams.finished, "the refusal")
    assert isinstance(streams.failure, StreamsError)
    return str(streams.failure)


def test_we_cannot_join_java_and_say_so_and_do_not_disturb_it(cluster: Cluster, java: JavaSide):
    create(cluster)
    java.start("windows", "shared", cluster.path / "java")
    before = cluster.admin.group_members("shared")
    said = refusal(counting(cluster))
    assert "InconsistentGroupProtocol" in said
    assert "Java's Kafka Streams" in said
    assert "choose another application_id" in said
    eventually(lambda: cluster.all_committed("shared", "in"), "Java works on")
    assert cluster.admin.group_members("shared") == before
    java.stop("shared")


def test_we_wait_for_java_that_was_closed_and_has_not_left_and_say_so(
    cluster: Cluster, java: JavaSide, caplog: pytest.LogCaptureFixture
):
    create(cluster)
    java.start("windows", "shared", cluster.path / "java", **{"consumer.session.timeout.ms": 3_000})
    eventually(lambda: cluster.all_committed("shared", "in"), "Java has done its part")
    java.stop("shared", leaving=False)
    (left_behind,) = cluster.admin.group_members("shared")
    write(cluster)
    streams = Streams(counts(cluster), broker=cluster.broker_with(session_timeout_ms=20_000))
    with caplog.at_level(logging.INFO, logger="pystreams"):
        streams.start()
        try:
            caught_up(streams)
        finally:
            assert streams.close(60_000)
    (waiting,) = [line for line in caplog.messages if "waiting for up to" in line]
    assert "waiting for up to 20 s: Java's Kafka Streams has members in this group" in waiting
    assert "shared-" in waiting
    assert "session.timeout.ms is over, 45 s by default; if it is running, stop it" in waiting
    assert [line for line in caplog.messages if "members of Java's Kafka Streams are gone" in line]
    assert left_behind not in cluster.admin.group_members("shared")
    # Java had read the first half, and its offsets are ours.
    assert set(cluster.table("out").values()) == {10}


def test_we_cannot_join_plain_consumers_and_say_so_and_do_not_disturb_them(cluster: Cluster, java: JavaSide):
    create(cluster)
    java.ask("join", group="shared", topic="in")
    eventually(lambda: java.ask("assigned", group="shared")["partitions"] == 2, "the consumer has joined")
    said = refusal(counting(cluster))
    assert "InconsistentGroupProtocol" in said
    assert "consumers of another kind (plain ones" in said
    assert java.ask("assigned", group="shared") == {"partitions": 2, "failure": ""}
    assert java.ask("leave", group="shared") is True
    caught_up(counting(cluster))

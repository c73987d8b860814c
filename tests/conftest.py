"""What all tests share: one real Kafka for each process that runs tests, and what is skipped, visibly, where Java or
Kafka cannot be had. With ``CI=true`` tests on Kafka fail there instead."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.dealing import Scheduling, in_turn
from tests.examples import TIMES
from tests.java import QUICK, SPARK, quick_maven, with_archive
from tests.kafka.server import KafkaServer, why_not
from tests.starting.forked import Popen

if TYPE_CHECKING:
    from tests.kafka.support import Cluster

#: What the fixture ``log`` may be asked for: ``both_logs`` and the contract of the broker's port run on each.
BOTH_LOGS = ("embedded", pytest.param("kafka", marks=pytest.mark.kafka))

# How long an example takes says more about who else is busy on the machine than about the code.
# With CI=true hypothesis would try the same few examples in each run.
settings.register_profile(
    "unhurried", parent=settings.default, deadline=None, derandomize=False, max_examples=50 * TIMES
)
settings.load_profile("unhurried")


def why_no_oracle() -> str | None:
    """What is missing to ask Java Kafka Streams; None if nothing is."""
    named = os.environ.get("PYSTREAMS_ORACLE")
    if not named:
        return "PYSTREAMS_ORACLE names no oracle"
    if not Path(named).is_file():
        return f"PYSTREAMS_ORACLE names {named}, which is not a file"
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"the oracle needs {' and '.join(missing)}" if missing else None


def pytest_configure() -> None:
    """Have what tests start hear Ctrl-C and a closed terminal: a shell that runs the tests in the background has all of
    them ignore the one, nohup the other. The tests themselves go on without their terminal. Programs that they start,
    Maven, and Spark in whatever process, start quickly."""
    if sys.platform == "linux" and os.environ.get("PYSTREAMS_TESTS_START") != "exec":
        subprocess.Popen = Popen  # type: ignore[misc]
    quick_maven()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join((*QUICK, *with_archive(SPARK))))
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(QUICK))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # Unlike what is ignored, a handler is not handed down.


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the bytecode of the tests, which halves the time of the next collection, also where PYTHONDONTWRITEBYTECODE
    is set. What tests import later may change within a second, so that older bytecode would be taken for its own.
    The garbage collector is off meanwhile: it would find next to nothing."""
    forbidden, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        sys.dont_write_bytecode = forbidden


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``oracle`` with the reason, and put all in the order in which they are dealt out."""
    reason = why_no_oracle()
    if reason is not None:
        for item in items:
            if item.get_closest_marker("oracle"):
                item.add_marker(pytest.mark.skip(reason=reason))
    items[:] = in_turn(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """What ``--dist loadfile`` does, with units for files."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over the tests that were collected, and the modules that they imported: it would
    look at all of them again and again."""
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked ``both_logs`` on the embedded log and on Kafka."""
    if metafunc.definition.get_closest_marker("both_logs") and "log" in metafunc.fixturenames:
        metafunc.parametrize("log", BOTH_LOGS, indirect=True)


def make_coordinators(bootstrap_servers: str) -> None:
    """Have a new Kafka make the topic of its groups' offsets. While it does, on a busy machine, it leaves single
    requests without an answer for half a minute: no test is to begin with that."""
    from tests.kafka.support import connect

    with closing(connect(bootstrap_servers)) as broker, closing(broker.admin()) as admin:
        # The topic has three partitions, and a group's name decides which is its own.
        for number in range(12):
            admin.group_members(f"nobody-{number}")


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """An empty folder that is not in memory, as ``tmp_path`` may be."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A Kafka that is started once. Whoever breaks or configures one takes a server of its own (tests/kafka)."""
    reason = why_not()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    server = KafkaServer(tmp_path_factory.mktemp("kafka"))
    server.start()
    make_coordinators(server.bootstrap_servers)
    yield server
    server.stop()


@pytest.fixture
def cluster(server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    """The server without topics and groups; everything that was opened through it is closed at the end."""
    from tests.kafka.support import Cluster

    cluster = Cluster(server.bootstrap_servers, tmp_path)
    yield cluster
    cluster.close()

"""A run listens nowhere, and with ``--http`` at one TCP port; its state and its topics hold no pickles. So says the
page on security."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
import rocksdict

from tests.cli.workers.workers_kit import WorkersRun
from tests.linux import children, listening
from tests.live.support import Log, eventually
from tests.serving.http_kit import get

GROUPED = """
from pystreams import App

app = App("grouped", poll_ms=10)
numbers = app.stream("in", key=str, value=int)
numbers.group_by(lambda key, _: key, key=str).count(name="counts").to_stream().to("out")
"""

#: Pickles of these protocols begin with 0x80 and the number.
PROTOCOLS = {b"\x02", b"\x03", b"\x04", b"\x05"}

INTERNAL = ("grouped-counts-repartition", "grouped-counts-changelog")


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    """The log that commands find in the folder, and the program beside it."""
    (folder / "grouped.py").write_text(GROUPED, encoding="utf-8")
    (folder / ".pystreams").mkdir()
    with closing(Log(folder / ".pystreams")) as log:
        log.create("in", "out", partitions=2)
        log.write("in", [(f"k{number}", number, number) for number in range(20)])
        yield log


def reachable(run: WorkersRun) -> set[str]:
    """Where the run and all its workers can be reached."""
    processes = [run.process.pid, *children(run.process.pid)]
    return set().union(*map(listening, processes))


def entries(folder: Path) -> Iterator[bytes]:
    """The keys and values of all RocksDBs in a folder, and what its other files have."""
    databases = {path.parent for path in folder.rglob("CURRENT")}
    for path in databases:
        options = rocksdict.Options(raw_mode=True)
        families = dict.fromkeys(rocksdict.Rdict.list_cf(str(path), options), options)
        with closing(rocksdict.Rdict(str(path), options, families)) as database:
            for family in families:
                for part in chain.from_iterable(database.get_column_family(family).items()):
                    assert isinstance(part, bytes)
                    yield part
    for path in folder.rglob("*"):
        if path.is_file() and path.parent not in databases:
            yield path.read_bytes()


def is_pickle(data: bytes) -> bool:
    """Whether a pickle begins there, or behind the timestamp of an entry."""
    return any(data[at : at + 1] == b"\x80" and data[at + 1 : at + 2] in PROTOCOLS for at in (0, 8))


@pytest.mark.parametrize("http", [[], ["--http", "127.0.0.1:0"]], ids=["without", "with"])
def test_a_run_with_workers_listens_only_for_http_and_keeps_no_pickles(
    log: Log, folder: Path, http: list[str]
) -> None:
    run = WorkersRun(folder, "grouped", "--workers", "2", *http)
    try:
        eventually(lambda: len(log.table("out")) == 20, f"all is counted; {run.text}")
        run.all_there(2)
        found = reachable(run)
        if http:
            address = run.says(r"Metrics, health and stores are at http://(\S+):(\d+)")
            assert found == {f"tcp 0100007F:{int(address[2]):04X}"}
            assert get(f"{address[1]}:{address[2]}", "/live").status == 200
        else:
            assert found == set()
        run.send(signal.SIGTERM)
        run.ends_with(0)
    finally:
        run.close()
    kept = list(entries(folder / ".pystreams" / "state"))
    assert b"k7" in kept
    records = [line for one in log.partitions(*INTERNAL) for line in log.lines(one).values()]
    sent = [part for record in records for part in (record.key, record.value)]
    assert b"k7" in sent
    assert [data for data in [*kept, *sent] if data is not None and is_pickle(data)] == []

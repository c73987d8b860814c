"""Any thread may ask for the figures of a store, also while its own thread opens, writes and closes the database."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from pystreams.errors import StateError
from pystreams.state.disk.rocksdb import RocksDatabase, RocksTable
from pystreams.state.figures import ROCKSDB_PROPERTIES
from tests.live.support import eventually
from tests.unit.state.state_kit import RESOURCES

OPENINGS = 10


def test_who_asks_gets_figures_or_a_refusal_and_the_owner_notices_nothing(tmp_path: Path) -> None:
    tables: list[RocksTable] = []
    ended = threading.Event()
    answers: list[int] = []

    def ask() -> None:
        while not ended.is_set():
            for table in tables:
                # While the database is closed.
                with suppress(StateError):
                    answers.append(len(table.properties(ROCKSDB_PROPERTIES)))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(OPENINGS):
            database = RocksDatabase(tmp_path / "db", ["rows"], RESOURCES)
            table = database.tables["rows"]
            tables[:] = [table]
            database.write([(table, {b"key": b"value"})])
            assert table.get(b"key") == b"value"
            table.flush()
            count = len(answers)
            eventually(lambda count=count: len(answers) > count, "another thread has figures")
            database.reopen()
            assert table.get(b"key") == b"value"
            database.close()
    finally:
        ended.set()
        asking.join()
    assert set(answers) == {len(ROCKSDB_PROPERTIES)}

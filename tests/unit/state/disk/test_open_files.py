"""Many stores need many open files: the limit is raised as far as possible, and an error says what to do beyond it."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

#: Opens 100 stores with an entry each, in a process that may have 80 open files, or a hard limit above that.
MANY_STORES = """
import resource, sys
from pathlib import Path
from pystreams.errors import StateError
from pystreams.state.disk.open_files import allow_open_files
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources

resource.setrlimit(resource.RLIMIT_NOFILE, (80, int(sys.argv[2])))
print(allow_open_files())
stores = [f"store-{number}" for number in range(100)]
try:
    for _ in range(2):
        database = RocksDatabase(Path(sys.argv[1]), stores, RocksResources(1 << 20, 1 << 20))
        database.write([(table, {b"key": b"value"}) for table in database.tables.values()])
        database.close()
    print("opened")
except StateError as error:
    print(type(error).__name__, error.what, error.hint)
"""


def opened(folder: Path, hard_limit: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MANY_STORES, str(folder / "db"), str(hard_limit)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_limit_is_raised_to_what_the_system_permits(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 < hard < 500:
        pytest.skip(f"this process may not have more than {hard} open files")
    assert opened(tmp_path, 500) == ["500", "opened"]


def test_the_error_beyond_it_says_what_to_do(tmp_path: Path) -> None:
    limit, message = opened(tmp_path, 80)
    assert limit == "80"
    assert message.startswith("StateError ")
    assert "too many open files" in message
    assert "ulimit -n" in message

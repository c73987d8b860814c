"""A full disk, under the log or under the state: a clear end, nothing lost, and a restart once there is room."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import BrokerError, StateError
from tests.live.bad_input.kit import failure_of
from tests.live.support import Log, eventually, run_to_the_end

MEGABYTE = 1 << 20
NO_CACHE = {"statestore_cache_max_bytes": 0}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty disk of 16 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    path = tmp_path / "disk"
    path.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"small", os.fsencode(path), b"tmpfs", 0, b"size=16m") != 0:
        reason = os.strerror(ctypes.get_errno())
        assert not os.environ.get("CI"), f"a small disk could not be mounted: {reason}"
        pytest.skip(f"a small disk could not be mounted: {reason}")
    try:
        yield path
    finally:
        assert libc.umount2(os.fsencode(path), 2) == 0


def fill(disk: Path, leave: int = 0) -> Path:
    """Write a file that leaves so many bytes of the disk."""
    filling = disk / "filling"
    with filling.open("wb") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        os.posix_fallocate(file.fileno(), 0, free - leave)
    return filling


def numbers(count: int) -> list[tuple[str, bytes, int]]:
    """Values that hold their number, and are long."""
    return [(f"k{i}", i.to_bytes(8) + os.urandom(20_000), i) for i in range(count)]


def copies(log: Log, **settings: Any) -> App:
    app = log.app("copies", **NO_CACHE, **settings)
    values = app.stream("in", key=str, value=bytes)
    values.to("out")
    values.group_by_key().reduce(lambda one, two: two, name="last")
    return app


def test_under_the_log_the_application_ends_and_goes_on_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    log = Log(small_disk)
    try:
        log.create("in", "out")
        log.write("in", numbers(150), value=bytes)
        filling = fill(small_disk, leave=MEGABYTE)
        failure = failure_of(log, copies(log, state_dir=tmp_path / "state"))
        assert isinstance(failure, BrokerError)
        assert "full" in failure.what
        assert "log.db" in failure.where
        assert "free" in failure.hint
        filling.unlink()
        run_to_the_end(log, copies(log, state_dir=tmp_path / "state"))
        assert [r.value[:8] for r in log.read("out", value=bytes)] == [i.to_bytes(8) for i in range(150)]
        assert len(log.table("copies-last-changelog", value=bytes)) == 150
    finally:
        log.close()


def test_under_the_log_producing_says_so_and_what_is_there_can_be_read(folder, pystreams, small_disk) -> None:
    where = ("--embedded-log", str(small_disk / "log.db"))
    assert pystreams("topics", "create", "lines", *where).code == 0
    assert pystreams("produce", "lines", *where, stdin="before\n").code == 0
    filling = fill(small_disk, leave=MEGABYTE)
    refused = pystreams("produce", "lines", *where, stdin=f"{'x' * 500_000}\n" * 20)
    assert refused.code == 4
    assert "Traceback" not in refused.err
    assert "full" in refused.err
    assert "before" in pystreams("consume", "lines", *where).out
    filling.unlink()
    assert pystreams("produce", "lines", *where, stdin="after\n").code == 0
    assert [line.split("\t")[-1] for line in pystreams("consume", "lines", *where).lines] == [
        "before",
        "after",
    ]


def test_under_the_log_at_the_very_start(folder, pystreams, small_disk) -> None:
    fill(small_disk)
    refused = pystreams("topics", "create", "lines", "--embedded-log", str(small_disk / "sub" / "log.db"))
    assert refused.code in {2, 4}
    assert "Traceback" not in refused.err
    assert "log.db" in refused.err


def test_under_the_state_the_application_ends_and_goes_on_when_there_is_room(
    log: Log, small_disk: Path
) -> None:
    log.create("in", "out")
    log.write("in", numbers(100), value=bytes)
    run_to_the_end(log, copies(log, state_dir=small_disk))
    filling = fill(small_disk, leave=MEGABYTE)
    log.write("in", numbers(300)[100:], value=bytes)
    failure = failure_of(log, copies(log, state_dir=small_disk))
    assert isinstance(failure, StateError)
    assert "full" in failure.what
    assert str(small_disk) in failure.where
    assert "task 0_0" in failure.where
    assert "free" in failure.hint
    filling.unlink()
    streams = log.start(copies(log, state_dir=small_disk))
    eventually(streams.caught_up, "caught up")
    assert [r.value[:8] for r in log.read("out", value=bytes)] == [i.to_bytes(8) for i in range(300)]
    assert {key: entry.value[:8] for key, entry in streams.store("last").all()} == {
        f"k{i}": i.to_bytes(8) for i in range(300)
    }


def test_under_the_state_at_the_very_start(log: Log, small_disk: Path) -> None:
    log.create("in", "out")
    log.write("in", numbers(10), value=bytes)
    filling = fill(small_disk)
    with pytest.raises(StateError) as caught:
        run_to_the_end(log, copies(log, state_dir=small_disk / "state"))
    assert "No space left" in caught.value.why
    assert "free some space" in caught.value.hint
    filling.unlink()
    run_to_the_end(log, copies(log, state_dir=small_disk / "state"))
    assert len(log.read("out", value=bytes)) == 10

"""Whatever becomes of active tasks and standbys, the files of those that are gone are closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.runtime.tasks.relay_kit import KEYS, Relay

FILES = Path("/proc/self/fd")


def open_files(below: Path) -> list[str]:
    """The files of the stores, without those that are closed in between."""
    found = []
    for file in FILES.iterdir():
        try:
            target = str(file.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(str(below)):
            found.append(target)
    return found


@pytest.mark.skipif(not FILES.exists(), reason="this system does not list the open files of a process")
@pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "at_least_once"])
def test_tasks_that_change_hands_leave_no_file_open(tmp_path: Path, transactional: bool) -> None:
    relay = Relay(tmp_path, transactional=transactional)
    relay.begin()
    counts = []
    for turn in range(12):
        for key in KEYS:
            relay.feed(key, b"%d" % turn)
        relay.settle()
        relay.hand_over()
        relay.settle()
        relay.check_results()
        counts.append(len(open_files(tmp_path)))
    assert counts[0] > 0, "the stores are on disk"
    # A store may have one table file more or less than before.
    assert max(counts[6:]) <= max(counts[:6]) + 4, counts
    relay.close()
    assert not open_files(tmp_path)

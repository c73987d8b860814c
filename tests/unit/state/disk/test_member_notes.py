"""The notes of members tell who was which member, and whether the process lives."""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pystreams.errors import StateError
from pystreams.ids import MemberName
from pystreams.state.disk import member_notes
from pystreams.state.disk.member_notes import MemberNotes

DYNAMIC, STATIC = MemberName("app-1-abc"), MemberName("app-2-def", "host-1-2")

#: Notes two members, and waits to be killed.
PROGRAM = """
import sys
from pathlib import Path
from pystreams.ids import MemberName
from pystreams.state.disk.member_notes import MemberNotes

notes = MemberNotes(Path(sys.argv[1]))
notes.add(MemberName("app-1-abc"))
notes.add(MemberName("app-2-def", "host-1-2"))
print(notes.client, flush=True)
sys.stdin.read()
"""


def test_the_notes_of_a_process_that_is_killed_remain_and_are_not_locked(tmp_path: Path):
    notes = MemberNotes(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        client = process.stdout.readline().strip()
        assert notes.others() == [client]
        assert notes.lives(client)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert notes.others() == [client]
    assert not notes.lives(client)
    assert notes.members(client) == [DYNAMIC, STATIC]
    notes.forget(client)
    assert notes.others() == []
    notes.close()


def test_two_who_look_at_once_do_not_take_each_other_for_the_owner(tmp_path: Path):
    one, other, looking = MemberNotes(tmp_path), MemberNotes(tmp_path), MemberNotes(tmp_path)
    assert one.others() == sorted([other.client, looking.client])
    assert all(looking.lives(client) for client in looking.others())
    assert all(one.lives(client) for client in one.others())
    for notes in (one, other, looking):
        notes.close()


def test_who_is_closed_leaves_no_notes(tmp_path: Path):
    one, other = MemberNotes(tmp_path), MemberNotes(tmp_path)
    one.add(DYNAMIC)
    one.close()
    one.add(STATIC)
    assert other.others() == []
    assert other.members(one.client) == []
    assert not other.lives(one.client)
    other.close()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path):
    (tmp_path / "members").write_text("in the way")
    with pytest.raises(StateError, match=r"state directory cannot be used(.|\n)*members"):
        MemberNotes(tmp_path)


def test_clients_of_another_machine_that_shares_the_directory_are_not_seen(tmp_path: Path, monkeypatch):
    here = MemberNotes(tmp_path)
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("5f0c1f6e-0000-4000-8000-000000000000\n")
    monkeypatch.setattr(member_notes, "_BOOT_ID", boot_id)
    elsewhere = MemberNotes(tmp_path)
    assert here.others() == elsewhere.others() == []
    here.close()
    elsewhere.close()


@contextmanager
def room_for(more_bytes: int, path: Path) -> Iterator[None]:
    """No file of this process may become larger than this one with so many more bytes: a write beyond that is cut off,
    and the next one fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("more_bytes", [0, 1, 8])
def test_a_line_that_a_full_disk_has_cut_off_is_left_out_and_spoils_no_other(tmp_path: Path, more_bytes: int):
    one, other = MemberNotes(tmp_path), MemberNotes(tmp_path)
    path = tmp_path / "members" / one.client
    one.add(DYNAMIC)
    size = path.stat().st_size
    for _ in range(2):
        with room_for(more_bytes, path), pytest.raises(StateError, match="state directory cannot be used"):
            one.add(MemberName("app-3-ghi"))
        assert other.members(one.client) == [DYNAMIC]
    assert path.stat().st_size == size + 2 * more_bytes
    one.add(STATIC)
    assert other.members(one.client) == [DYNAMIC, STATIC]
    one.close()
    other.close()


@pytest.mark.parametrize("line", ['["app-2-["app-3-ghi", null]', "[1, 2, 3]", "7", "\xff", ""])
def test_what_cannot_be_read_is_left_out(tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "pystreams")
    one, other = MemberNotes(tmp_path), MemberNotes(tmp_path)
    one.add(DYNAMIC)
    with (tmp_path / "members" / one.client).open("a", encoding="latin-1") as notes:
        notes.write(f"{line}\n")
    one.add(STATIC)
    assert other.members(one.client) == [DYNAMIC, STATIC]
    assert "cannot be read" in caplog.text
    one.close()
    other.close()

"""Two processes with one process id, of two threads each: they fence each other until one of them ends with an error,
and the other one goes on with both threads; every count is written once."""

from __future__ import annotations

import shutil
import socket

import pytest

from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.live.support import eventually

pytestmark = pytest.mark.slow


def test_one_of_two_processes_with_a_copied_directory_gives_up(words: WordCounts) -> None:
    original = words.start("one", num_stream_threads=2)
    eventually(lambda: READ[1] in words.cluster.admin.partition_counts(), "its topics are there")
    words.write(200)
    words.done()
    copied = words.cluster.path / "two" / APPLICATION
    copied.mkdir(parents=True)
    shutil.copy(words.cluster.path / "one" / APPLICATION / "process.json", copied)
    copy = words.start("two", num_stream_threads=2)

    def one_has_ended() -> bool:
        words.write_for(0.2)
        return None not in (original.poll(), copy.poll()) or original.poll() != copy.poll()

    eventually(one_has_ended, "one of them gives up", 120)
    words.write(200)
    words.done()
    assert sorted([original.poll() is None, copy.poll() is None]) == [False, True], words.printed()
    assert words.members() == 2, "both threads of one process"
    words.stop_all()
    words.check()
    assert "Another process has the process id of this one" in words.printed()
    assert (
        f"this process is on {socket.gethostname()} (127.0.0.1), the other one on 127.0.0.1"
        in words.printed()
    )

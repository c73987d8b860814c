"""Whoever asks to be called at the end of a mark is called, or learns that it has ended: there is no moment between."""

from __future__ import annotations

import threading

from pystreams.state.commit_mark import CommitMark


def test_those_who_have_asked_are_called_once_each() -> None:
    mark, heard = CommitMark(), []
    first, second = (lambda: heard.append(1)), (lambda: heard.append(2))
    assert [mark.at_end(call) for call in (first, second, first)] == [True, True, True]
    assert heard == []
    mark.end()
    assert sorted(heard) == [1, 2]


def test_nobody_can_wait_for_an_end_that_has_come() -> None:
    mark = CommitMark()
    mark.end()
    assert not mark.at_end(lambda: None)


def test_an_end_at_the_same_moment_is_not_missed() -> None:
    for _ in range(500):
        mark, heard, start = CommitMark(), threading.Event(), threading.Barrier(2)

        def end(mark: CommitMark = mark, start: threading.Barrier = start) -> None:
            start.wait()
            mark.end()

        ending = threading.Thread(target=end)
        ending.start()
        start.wait()
        will_hear = mark.at_end(heard.set)
        ending.join()
        assert heard.is_set() or not will_hear

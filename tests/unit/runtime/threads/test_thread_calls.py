"""What one thread asks of another is done by it, or refused once it has ended; never forgotten."""

from __future__ import annotations

import pytest

from pystreams.errors import StateError
from pystreams.runtime.threads.thread_calls import CallQueue


def test_a_call_is_done_when_the_owner_comes_by() -> None:
    calls: CallQueue[list[int]] = CallQueue("t")
    future = calls.put(sum)
    assert calls.waiting
    assert not future.done()
    calls.answer([1, 2])
    assert future.result(0) == 3


def test_what_a_call_raises_belongs_to_the_one_who_asked() -> None:
    calls: CallQueue[list[int]] = CallQueue("t")
    future = calls.put(lambda numbers: numbers[5])
    calls.answer([])
    assert isinstance(future.exception(0), IndexError)


def test_calls_before_and_after_the_end_are_refused() -> None:
    calls: CallQueue[list[int]] = CallQueue("t")
    before = calls.put(len)
    calls.refuse()
    for future in (before, calls.put(len)):
        with pytest.raises(StateError, match="thread t has ended"):
            future.result(0)


def test_a_cancelled_call_is_left_out() -> None:
    calls: CallQueue[list[int]] = CallQueue("t")
    seen: list[int] = []
    calls.put(lambda numbers: seen.append(1)).cancel()
    calls.answer([])
    assert seen == []


def test_a_call_that_was_cancelled_does_not_hinder_the_end() -> None:
    calls: CallQueue[list[int]] = CallQueue("t")
    cancelled, waiting = calls.put(len), calls.put(len)
    cancelled.cancel()
    calls.refuse()
    assert cancelled.cancelled()
    with pytest.raises(StateError, match="thread t has ended"):
        waiting.result(0)

"""Tells whether all that differs from Kafka Streams is windows that it has lost: past their retention when they were to
be emitted.

The scenario runs once more with an emission that sees no more than the store shows, as in Kafka Streams: then nothing
may differ any more, whatever comes behind the windows. And each emission must show what that one does, in its order,
and besides nothing but what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pystreams.state.layers.session_layer import split_session_key
from pystreams.state.stores.session import SessionStore
from pystreams.state.stores.window import TimestampedWindowStore
from pystreams.state.window_reads import WindowRead
from tests.conformance.compare import LEVELS, difference
from tests.conformance.runner import run

Json = dict[str, Any]
#: Windows or sessions, and their bytes.
Rows = Iterator[tuple[Any, bytes]]


def lost_on_close(scenario: Json, theirs: Json, level: int = LEVELS) -> str | None:
    """Why the results may differ; None: for no such reason."""
    if not any(step.get("emit") == "close" for step in scenario["steps"]):
        return None
    with _shown_alone():
        again = run(scenario)
    return None if difference(theirs, again, level) else "windows past their retention when they are emitted"


@contextmanager
def _shown_alone() -> Iterator[None]:
    def windows(store: TimestampedWindowStore[Any, Any], first: int, last: int) -> Any:
        layer = store.layer
        shown = layer.read_windows(WindowRead(None, None, first, last, "all"))
        check(shown, layer.fetch_held(first, last), lambda window: window[1] < layer.first_visible_ms)
        return store.fetch_all(first, last)

    def sessions(store: SessionStore[Any, Any], first: int, last: int) -> Any:
        layer = store.layer
        shown = layer.find_ended(first, last)
        held = layer.find_held(first, last)
        check(shown, held, lambda address: split_session_key(address)[2] < layer.first_visible_ms)
        return store.find_ended_sessions(first, last)

    of_windows = patch.object(TimestampedWindowStore, "fetch_held", windows)
    of_sessions = patch.object(SessionStore, "find_held", sessions)
    with of_windows, of_sessions:
        yield


def check(shown: Rows, emitted: Rows, expired: Callable[[Any], bool]) -> None:
    """Raises ``AssertionError`` if what is emitted is not what is shown and, before or between it, what has expired."""
    expected = next(shown, None)
    for row in emitted:
        if row == expected:
            expected = next(shown, None)
        else:
            assert expired(row[0]), f"{row} has not expired"
    assert expected is None, f"{expected} is not emitted"

"""Applications that end because of what they met, and what they have left in the log."""

from __future__ import annotations

from typing import Any, NamedTuple

from pystreams.app import App
from pystreams.errors import StreamsError
from pystreams.runtime.client_state import ClientState
from tests.live.support import Log, eventually

ERRORS = "__streams.errors."


class Raw(NamedTuple):
    """A record as bytes; ``headers`` as a dictionary."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: dict[str, bytes | None]


def failure_of(log: Log, app: App) -> StreamsError:
    """Run an application until it fails; the error, which is one of ours and says where it happened."""
    streams = log.start(app)
    eventually(lambda: streams.finished, "the failure")
    assert streams.state is ClientState.ERROR
    failure = streams.failure
    assert isinstance(failure, StreamsError), failure
    assert failure.where, f"no place in: {failure}"
    return failure


def copies(log: Log, **settings: Any) -> App:
    """Copies numbers from topic in to topic out, and counts them by key: what was processed, and how often."""
    app = log.app("copies", **settings)
    numbers = app.stream("in", key=str, value=int)
    numbers.to("out")
    numbers.group_by_key().count(name="counts")
    return app


def dead_letters(app_log: Log, topic: str = "dead") -> list[Raw]:
    """The records of the dead-letter topic."""
    return [
        Raw(key, value, time, dict(headers))
        for partition in app_log.partitions(topic)
        for key, value, time, headers in app_log.lines(partition).values()
    ]


def told(letter: Raw) -> dict[str, str]:
    """What the headers of a dead letter tell, by the last part of their names."""
    return {
        name.removeprefix(ERRORS): (content or b"").decode()
        for name, content in letter.headers.items()
        if name.startswith(ERRORS)
    }

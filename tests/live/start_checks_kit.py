"""An application to start, and a start that is refused."""

from __future__ import annotations

import pytest

from pystreams.app import App
from pystreams.errors import StreamsError
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from tests.live.support import Log


def counting(log: Log, name: str = "counting", **settings: object) -> App:
    app = log.app(name, **settings)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def refused_with(errors: type[StreamsError] | tuple[type[StreamsError], ...], log: Log, app: App) -> str:
    """The message with which the start is refused; the client is in state ERROR then."""
    streams = Streams(app, broker=log.broker)
    with pytest.raises(errors) as caught:
        streams.start()
    assert streams.state is ClientState.ERROR
    assert streams.failure is caught.value
    return str(caught.value)

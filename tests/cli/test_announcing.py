"""A run announces its own address to the group only if the application does not name another one."""

from __future__ import annotations

import pytest

from pystreams import App, Streams
from pystreams.cli.watching import announce


@pytest.mark.parametrize(
    "named, own, announced",
    [
        (None, "10.0.0.7:8080", "10.0.0.7:8080"),
        ("shop.example:80", "10.0.0.7:8080", "shop.example:80"),
        ("shop.example:80", None, "shop.example:80"),
        (None, None, None),
    ],
)
def test_the_address_that_the_application_names_comes_first(named, own, announced) -> None:
    app = App("shop", application_server=named)
    app.stream("orders", key=str, value=str).to("copies")
    streams = Streams(app)
    announce(streams, own)
    assert streams.config.application_server == announced

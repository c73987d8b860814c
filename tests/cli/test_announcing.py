"""A run announces its own address to the group only if the application does not name another one."""

from __future__ import annotations

import socket

import pytest

from pystreams import App, Streams
from pystreams.cli.watching import announce
from pystreams.serving.address import Address, Endpoint


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
    streams = shop(application_server=named)
    announce(streams, None if own is None else Endpoint(own))
    assert streams.config.application_server == announced


@pytest.mark.parametrize("found", ["127.0.1.1", "127.0.0.1", None])
def test_where_the_machine_has_no_name_for_others_the_address_is_of_this_machine(monkeypatch, found) -> None:
    names(monkeypatch, found)
    assert Address("0.0.0.0", 8080).endpoint() == Endpoint("localhost:8080", only_here=True)
    assert Address("10.0.0.7", 8080).endpoint() == Endpoint("10.0.0.7:8080")
    names(monkeypatch, "10.0.0.7")
    assert Address("0.0.0.0", 8080).endpoint() == Endpoint("10.0.0.7:8080")


def test_on_the_embedded_log_an_address_of_this_machine_is_announced(caplog) -> None:
    streams = shop()
    announce(streams, Endpoint("localhost:8080", only_here=True))
    assert streams.config.application_server == "localhost:8080"
    assert caplog.messages == []


def test_on_kafka_a_warning_says_that_others_cannot_find_it(caplog) -> None:
    streams = shop(bootstrap_servers="broker:9092")
    here = Endpoint("localhost:8080", only_here=True)
    announce(streams, here, warns=False)
    assert caplog.messages == []
    announce(streams, here)
    assert streams.config.application_server is None
    (warning,) = caplog.messages
    assert "cannot find the HTTP server of this instance" in warning
    assert "-s application_server=10.0.0.5:8080" in warning


def shop(**settings) -> Streams:
    app = App("shop", **settings)
    app.stream("orders", key=str, value=str).to("copies")
    return Streams(app)


def names(monkeypatch, address: str | None) -> None:
    """The name of this machine stands for ``address``; None: for none."""

    def look_up(_name: str) -> str:
        if address is None:
            raise socket.gaierror
        return address

    monkeypatch.setattr(socket, "gethostbyname", look_up)

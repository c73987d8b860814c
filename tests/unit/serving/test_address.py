"""The server listens on this machine alone, unless the user names another address."""

from __future__ import annotations

import socket

import pytest

from pystreams.errors import ConfigError
from pystreams.serving.address import Address


@pytest.mark.parametrize(
    "text,host,port,shown",
    [
        ("8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
        (":8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("localhost:80", "localhost", 80, "localhost:80"),
        ("127.0.0.1:0", "127.0.0.1", 0, "127.0.0.1:0"),
        ("[::1]:8080", "::1", 8080, "[::1]:8080"),
        ("0.0.0.0:8080", "0.0.0.0", 8080, "0.0.0.0:8080"),
        ("[::]:8080", "::", 8080, "[::]:8080"),
        (" shop-0.example:8080 ", "shop-0.example", 8080, "shop-0.example:8080"),
    ],
)
def test_a_port_alone_is_of_this_machine(text, host, port, shown):
    address = Address.parse(text)
    assert address == Address(host, port)
    assert str(address) == shown


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "localhost:http", "1:2:", "h:70000", "h:-1", "²", "9" * 5_000]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="is not an address to listen on"):
        Address.parse(text)


def test_an_address_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match=f"nothing can listen on {address}"):
            address.listen()


@pytest.mark.parametrize("host", ["shop..example", "a" * 64, "shop\0", "2001:db8::1", "192.0.2.1"])
def test_an_address_that_this_machine_does_not_have_is_named(host):
    with pytest.raises(ConfigError, match="nothing can listen on") as refused:
        Address(host, 0).listen()
    assert refused.value.why
    assert "attempting" not in refused.value.why


def test_all_addresses_of_ipv6_are_also_those_of_ipv4():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no sockets for both")
    with Address("::", 0).listen() as listening:
        port = listening.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=30).close()

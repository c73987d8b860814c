"""Tokens are renewed before they expire, and a server that is away for a moment disturbs nobody."""

from __future__ import annotations

import logging
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from pystreams.clock import ManualClock
from pystreams.config.security import ClientCredentials
from pystreams.errors import BrokerError

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.sasl.oauth import SaslMechanismOAuth

    from pystreams.broker.kafka.oauth import MemberTokens, Tokens
    from pystreams.broker.kafka.settings import KafkaSettings
    from pystreams.broker.kafka.token_sources import provider_of


class Provider:
    """Gives numbered tokens that live for 100 s, as long as it is there."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.given = 0
        self.there = True

    def __call__(self) -> tuple[str, float]:
        if not self.there:
            raise ConnectionRefusedError("the vault is closed")
        self.given += 1
        return f"token-{self.given}", self.clock.now_ms() / 1000 + 100


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


def test_a_token_is_kept_for_most_of_its_life(clock: ManualClock):
    tokens = Tokens(Provider(clock), clock=clock)
    assert tokens.get() == ("token-1", 1_100.0)
    clock.advance_ms(79_000)
    assert tokens.get() == ("token-1", 1_100.0)
    clock.advance_ms(1_000)
    assert tokens.get() == ("token-2", 1_180.0)


def test_while_there_is_no_new_token_the_old_one_is_used_until_it_expires(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    provider = Provider(clock)
    tokens = Tokens(provider, clock=clock)
    tokens.get()
    provider.there = False
    clock.advance_ms(90_000)
    with caplog.at_level(logging.WARNING):
        assert tokens.get() == ("token-1", 1_100.0)
    assert "the vault is closed" in caplog.text
    assert "token-1" not in caplog.text
    clock.advance_ms(10_000)
    with pytest.raises(BrokerError, match="returned no token"):
        tokens.get()
    provider.there = True
    assert tokens.get()[0] == "token-2"


class Redirecting(BaseHTTPRequestHandler):
    """Sends whoever wants a token to another address on the same server, which gives one."""

    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.seen.append(self.path)
        self.send_response(302)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"access_token": "token", "expires_in": 60}')

    def log_message(self, *arguments: Any) -> None:
        """Not on standard error."""


def test_the_clients_secret_is_not_carried_to_another_address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/token"
        with pytest.raises(BrokerError) as caught:
            provider_of(ClientCredentials(url, "flights", "hunter2"))()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert caught.value.why == "the server answered 302 Found"
    assert Redirecting.seen == ["/token"]


def test_extensions_go_with_the_token_to_both_clients(clock: ManualClock):
    tokens = Tokens(Provider(clock), {"logicalCluster": "lkc-1"}, clock)
    assert tokens.for_librdkafka("") == ("token-1", 1_100.0, "", {"logicalCluster": "lkc-1"})
    mechanism = SaslMechanismOAuth(sasl_oauth_token_provider=MemberTokens(tokens))
    assert mechanism.auth_bytes() == b"n,,\x01auth=Bearer token-1\x01logicalCluster=lkc-1\x01\x01"


def test_extensions_come_from_the_login_module_as_in_java():
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    kafka = KafkaSettings(
        "127.0.0.1:1",
        client_settings={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{module} required extension_logicalCluster='lkc-1' extension_pool='p';",
        },
        oauth_token_provider=lambda: ("token", 1e12),
    )
    assert kafka.admin("x")["oauth_cb"]("")[3] == {"logicalCluster": "lkc-1", "pool": "p"}
    assert kafka.membership("x")["sasl_oauth_token_provider"].extensions() == {
        "logicalCluster": "lkc-1",
        "pool": "p",
    }

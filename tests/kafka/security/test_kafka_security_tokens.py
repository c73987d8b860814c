"""OAUTHBEARER: one source of tokens for both clients, asked again before they expire."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from pystreams.broker.port import TopicSpec
from pystreams.errors import BrokerError, ConfigError
from pystreams.ids import TopicPartition
from tests.broker.following import Follower
from tests.kafka.secure_server import REAUTHENTICATION_MS, Certificates, SecureServer, token
from tests.kafka.support import connect
from tests.live.support import eventually
from tests.unit.broker.log_helpers import deal

#: Fetched anew after four fifths of its life. The fifth that is left must be longer than the second in which the broker
#: takes no second login over the same connection.
TOKEN_LIFE_S = 8.0

CLIENT_ID, CLIENT_SECRET = "flights", "mad-as/a hatter"


def settings(certificates: Certificates, **more: str) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "ssl.ca.location": str(certificates.ca),
    } | {f"sasl.oauthbearer.{name.replace('_', '.')}": value for name, value in more.items()}


def credentials(url: str, **more: str) -> dict[str, str]:
    return {
        "token_endpoint_url": url,
        "client_credentials_client_id": CLIENT_ID,
        "client_credentials_client_secret": CLIENT_SECRET,
        **more,
    }


def test_a_function_of_the_program_gives_tokens_to_both_clients_before_they_expire(
    secure: SecureServer, certificates: Certificates
):
    given: list[float] = []

    def provider() -> tuple[str, float]:
        given.append(time.time())
        return token(TOKEN_LIFE_S), time.time() + TOKEN_LIFE_S

    broker = connect(secure.sasl, client_settings=settings(certificates), oauth_token_provider=provider)
    with closing(broker), closing(broker.admin()) as admin, closing(broker.producer("p", "p")) as producer:
        admin.create_topics([TopicSpec("t", 1)])
        with (
            closing(broker.consumer("c")) as consumer,
            closing(broker.member("a", "g", ["t"], bytes, deal("t", 1))) as member,
        ):
            follower = Follower("a", member, [])
            consumer.assign({TopicPartition("t", 0): 0})
            # Longer than a token lives, and than a connection is let without a new one: the time is the test.
            end = time.monotonic() + max(1.2 * TOKEN_LIFE_S, 2.2 * REAUTHENTICATION_MS / 1000)
            sent = received = 0
            while time.monotonic() < end or received < sent:
                if time.monotonic() < end:
                    producer.send("t", 0, b"k", b"v", 1, ())
                    producer.commit({}, None)
                    sent += 1
                follower.poll()
                admin.describe_topics(["t"])
                admin.group_offsets("g")
                received += sum(len(batch) for batch in consumer.poll(10))
            assert follower.held == {0}
            assert [type(event).__name__ for event in follower.events] == ["Assigned"]
        assert len(given) > 1
        eventually(lambda: admin.group_members("g") == [])
        admin.delete_group("g")
        admin.delete_topics(["t"])


class TokenServer(BaseHTTPRequestHandler):
    """Gives tokens to whoever knows the secret."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        right = self.headers["Authorization"] == f"Basic {known}"
        right = right and form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
        self.send_response(200 if right else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": token(600)} if right else {}).encode())

    def log_message(self, *arguments: Any) -> None:
        """Not on standard error."""


@pytest.fixture
def token_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def logged_in(secure: SecureServer, given: dict[str, Any]) -> Iterator[None]:
    """Both clients have said who they are."""
    with closing(connect(secure.sasl, client_settings=given)) as broker, closing(broker.admin()) as admin:
        admin.describe_topics()
        admin.group_offsets("g")
        yield


def test_tokens_are_fetched_with_the_clients_id_and_secret(
    secure: SecureServer, certificates: Certificates, token_url: str
):
    with logged_in(secure, settings(certificates, **credentials(token_url, scope="kafka"))):
        pass


def test_tokens_are_read_from_a_file(secure: SecureServer, certificates: Certificates, tmp_path: Path):
    path = tmp_path / "token"
    path.write_text(token(600) + "\n")
    with logged_in(secure, settings(certificates, token_endpoint_url=path.as_uri())):
        pass


@pytest.mark.parametrize(
    "changes,what",
    [
        ({"client_credentials_client_secret": "wrong-secret"}, "The token server refuses a token for Kafka"),
        ({"scope": "elsewhere"}, "The token server refuses a token for Kafka"),
        ({"token_endpoint_url": "http://127.0.0.1:1/token"}, "does not answer"),
        ({"token_endpoint_url": "file:///nowhere/token"}, "cannot be read"),
    ],
    ids=["secret", "scope", "nobody", "file"],
)
def test_why_there_is_no_token_is_said(
    certificates: Certificates, token_url: str, changes: dict[str, str], what: str
):
    given = {**credentials(token_url, scope="kafka"), **changes}
    with pytest.raises(BrokerError, match=what) as caught:
        connect("localhost:1", client_settings=settings(certificates, **given))
    assert "wrong-secret" not in str(caught.value)
    assert CLIENT_SECRET not in str(caught.value)


def _fails() -> tuple[str, float]:
    raise LookupError("the vault is closed")


@pytest.mark.parametrize(
    "provider,why",
    [
        (_fails, "LookupError: the vault is closed"),
        (lambda: "token", "it returned str"),
        (lambda: ("", 0.0), "it returned tuple"),
    ],
    ids=["raises", "no expiry", "empty"],
)
def test_a_function_that_gives_no_token_is_reported(certificates: Certificates, provider: Any, why: str):
    with pytest.raises(BrokerError, match="returned no token") as caught:
        connect("localhost:1", client_settings=settings(certificates), oauth_token_provider=provider)
    assert why in caught.value.why


def test_a_token_that_has_expired_is_reported(certificates: Certificates):
    with pytest.raises(BrokerError, match="has expired already"):
        connect(
            "localhost:1",
            client_settings=settings(certificates),
            oauth_token_provider=lambda: (token(-5), time.time() - 5),
        )


def test_a_broker_that_refuses_the_token_is_reported(secure: SecureServer, certificates: Certificates):
    with pytest.raises(BrokerError, match="refuses the login"):
        connect(
            secure.sasl,
            client_settings=settings(certificates),
            oauth_token_provider=lambda: ("no.jwt", time.time() + 600),
            connect_timeout_s=60.0,
        )


def test_tokens_from_nowhere_and_from_two_places_are_refused(certificates: Certificates):
    with pytest.raises(ConfigError, match="has no source of tokens"):
        connect("localhost:1", client_settings=settings(certificates))
    both = settings(certificates, token_endpoint_url="file:///token")
    with pytest.raises(ConfigError, match="several sources of tokens"):
        connect("localhost:1", client_settings=both, oauth_token_provider=lambda: ("", 0.0))

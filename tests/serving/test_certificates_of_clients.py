"""A server that wants to know who asks (``--http-client-ca``) answers only those who show a certificate that its
authority has signed: programs, commands and other instances."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.cli.application_client import AnswerError, ApplicationClient
from pystreams.cli.watching import HttpOptions
from pystreams.errors import ConfigError
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.peers import Peers
from pystreams.serving.stores.questions import Question
from pystreams.serving.tls import Tls, asking
from tests.kafka.secure_server import Certificates, why_not
from tests.serving.asyncio_kit import run_apart
from tests.serving.test_who_may_read import served

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def of_server(certificates: Certificates, client_ca: Path) -> Tls:
    server = certificates.server
    return Tls(server, server.with_suffix(".key"), certificates.ca, client_ca)


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[HttpServer]:
    """It demands certificates, and others than this machine reach it."""
    with served("0.0.0.0", tls=of_server(certificates, certificates.ca)) as server:
        yield server


@pytest.fixture(scope="module")
def endpoint(server: HttpServer) -> str:
    """The address for which its certificate is."""
    return f"localhost:{server.address.port}"


@pytest.fixture(scope="module")
def member(certificates: Certificates) -> ssl.SSLContext:
    """Who has a certificate of the authority."""
    return asking(certificates.ca, certificates.client, certificates.client_key)


def without(certificates: Certificates) -> ssl.SSLContext:
    return asking(certificates.ca, None, None)


def stranger(certificates: Certificates) -> ssl.SSLContext:
    """Who has a certificate of another authority."""
    return asking(certificates.ca, certificates.other_ca, certificates.other_ca.with_suffix(".key"))


@pytest.mark.parametrize("path", ["/stores", "/live", "/ready", "/metrics", "/"])
def test_every_page_is_for_those_with_a_certificate(path, endpoint, certificates, member):
    url = f"https://{endpoint}{path}"
    with urllib.request.urlopen(url, context=member, timeout=60) as answer:
        assert answer.status == 200
    for nobody in (without(certificates), stranger(certificates)):
        with pytest.raises((OSError, http.client.HTTPException)) as refused:
            urllib.request.urlopen(url, context=nobody, timeout=60)
        # It has not been answered at all.
        assert not hasattr(refused.value, "code")


def test_a_certificate_is_as_good_as_a_token_where_others_reach_the_address(server):
    assert not server.is_loopback
    assert not server.closed


def test_instances_show_theirs_when_they_ask_each_other(endpoint, certificates):
    def ask(trusting: ssl.SSLContext) -> StorePart:
        with closing(Peers(None, trusting)) as peers:
            return run_apart(peers.ask(endpoint, Question("counts", "a")))

    own = of_server(certificates, certificates.ca)
    assert ask(own.trusting()).read == [0]
    with pytest.raises(UnreachableError, match="cannot be asked over HTTPS") as refused:
        ask(stranger(certificates))
    assert "--http-client-ca" in refused.value.hint


def test_commands_show_theirs_and_without_one_they_say_which_options_give_it(endpoint, certificates, member):
    assert list(ApplicationClient(endpoint, None, member).entries("counts", {}, 10)) == []
    for nobody in (without(certificates), stranger(certificates)):
        with pytest.raises(AnswerError, match="cannot be asked over HTTPS") as refused:
            list(ApplicationClient(endpoint, None, nobody).entries("counts", {}, 10))
        assert "--cert FILE --key FILE" in refused.value.hint


def test_an_authority_that_cannot_be_used_is_refused_before_the_start(certificates, tmp_path):
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing", encoding="utf-8")
    with pytest.raises(ConfigError, match="certificates of the authority cannot be used") as refused:
        served(tls=of_server(certificates, nothing))
    assert str(nothing) in refused.value.where


def test_it_is_for_a_server_that_speaks_https():
    with pytest.raises(ConfigError, match="--http-client-ca is for instances that speak HTTPS"):
        HttpOptions(client_ca=Path("ca.pem")).check("8080")
    with pytest.raises(ConfigError, match="--http-client-ca is for --http"):
        HttpOptions(client_ca=Path("ca.pem")).check(None)

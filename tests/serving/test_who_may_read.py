"""Stores are read by those who may: programs of this machine, others with a token or where the user has said that
everybody may. Metrics and health everybody reads."""

from __future__ import annotations

import base64
import datetime as dt
import http.client
import ipaddress
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pystreams.errors import ConfigError
from pystreams.runtime.health import Health
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.parts import StoreInfo, StorePart
from pystreams.serving.tls import Tls
from pystreams.serving.token import read_token
from tests.serving.http_kit import get

TOKEN = "0123456789abcdef-of-a-test"
OPEN = ("/metrics", "/live", "/ready")


class Well:
    """An application that is well, and has no metrics."""

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        return Health(live=True, ready=True)

    def samples(self):
        return {}


class OneStore:
    """Somebody who has one empty store."""

    async def stores(self):
        return [StoreInfo("counts", "key_value", "str", "int", 1, [0])]

    def ask_at_once(self, question):
        return None

    async def ask(self, question):
        return StorePart(read=[0], partitions=1)


def served(host: str = "127.0.0.1", **who) -> HttpServer:
    return HttpServer(Address(host, 0), Well(), OneStore(), **who)


def test_with_a_token_nobody_reads_stores_without_it():
    with served(token=TOKEN) as server:
        page = get(server.address, "/stores")
        assert (page.status, page.json["code"]) == (401, "unauthorized")
        assert page.headers["www-authenticate"].startswith("Basic realm=")
        assert get(server.address, "/").status == 401
        assert get(server.address, "/nothing").status == 401
        for path in OPEN:
            assert get(server.address, path).status == 200
        assert get(server.address, "/stores", Authorization=f"Bearer {TOKEN}").status == 200
        assert get(server.address, "/stores", Authorization=f"bearer  {TOKEN} ").status == 200


def test_a_browser_sends_the_token_as_the_password_of_any_user():
    def basic(text: str) -> str:
        return "Basic " + base64.b64encode(text.encode()).decode()

    with served(token=TOKEN) as server:
        assert get(server.address, "/stores", Authorization=basic(f"ann:{TOKEN}")).status == 200
        assert get(server.address, "/stores", Authorization=basic(f"ann:{TOKEN}x")).status == 401
        assert get(server.address, "/stores", Authorization=basic(TOKEN)).status == 401
        assert get(server.address, "/stores", Authorization="Basic \xff").status == 401


@pytest.mark.parametrize(
    "sent", ["", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"]
)
def test_another_token_is_refused(sent):
    with served(token=TOKEN) as server:
        assert get(server.address, "/stores", Authorization=sent).status == 401


def test_stores_are_not_served_where_others_reach_them_unless_that_is_wanted():
    with served("0.0.0.0") as server:
        assert server.closed
        assert server.endpoint is not None
        address = Address("127.0.0.1", server.address.port)
        page = get(address, "/stores")
        assert (page.status, page.json["code"]) == (403, "closed")
        assert "--http-token-file" in page.json["hint"]
        for path in OPEN:
            assert get(address, path).status == 200
    with served("0.0.0.0", open_to_all=True) as server:
        assert get(Address("127.0.0.1", server.address.port), "/stores").status == 200
    with served("0.0.0.0", token=TOKEN) as server:
        address = Address("127.0.0.1", server.address.port)
        assert get(address, "/stores").status == 401
        assert get(address, "/stores", Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("content", ["", "short", "a token of several words", "x" * 15 + "\n", "ü" * 20])
def test_a_file_without_a_token_that_keeps_others_out_is_refused(tmp_path, content):
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="has no token that keeps others out") as caught:
        read_token(file)
    assert caught.value.hint == f"make one: (umask 077; openssl rand -hex 32 > {file})"


def test_a_token_is_all_of_its_file(tmp_path):
    file = tmp_path / "token"
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_token(file)
    assert caught.value.why == "No such file or directory"
    assert caught.value.hint.startswith("name the file that has the token, or make one: (umask 077; openssl ")
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert read_token(file) == TOKEN


def test_a_token_that_all_users_may_read_is_warned_of(tmp_path, caplog):
    file = tmp_path / "token"
    file.write_text(TOKEN, encoding="utf-8")
    file.chmod(0o600)
    read_token(file)
    assert not caplog.messages
    file.chmod(0o644)
    read_token(file)
    assert f"chmod 600 {file}" in caplog.text


def test_no_browser_takes_an_answer_for_a_page():
    with served() as server:
        for path in ("/", "/stores", "/stores/counts/entries", "/stores/nothing", "/live"):
            assert get(server.address, path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("partitions,is_given", [(10, True), (1_000, False)])
def test_a_position_that_proxies_would_refuse_is_left_out(partitions, is_given):
    class Many(OneStore):
        async def ask(self, question):
            position = {"orders": dict.fromkeys(range(partitions), 1_000_000)}
            return StorePart(read=[0], partitions=1, position=position)

    with HttpServer(Address("127.0.0.1", 0), Well(), Many()) as server:
        page = get(server.address, "/stores/counts/entries")
        assert page.status == 200
        assert ("pystreams-position" in page.headers) is is_given


def certificate(folder: Path) -> Tls:
    """A certificate of 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pystreams")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    tls = Tls(folder / "cert.pem", folder / "key.pem")
    tls.certificate.write_bytes(made.public_bytes(pem))
    tls.key.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return tls


def test_with_a_certificate_the_server_speaks_https_alone(tmp_path):
    tls = certificate(tmp_path)
    with served(tls=tls) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=tls.certificate)
        with urllib.request.urlopen(f"{server.url}/stores", context=trusting, timeout=60) as answer:
            assert answer.status == 200
        with pytest.raises(OSError, match=r"certificate verify failed"):
            urllib.request.urlopen(f"{server.url}/stores", timeout=60)
        with pytest.raises((ConnectionError, urllib.error.URLError, http.client.HTTPException)):
            urllib.request.urlopen(f"http://{server.address}/stores", timeout=60)


def test_files_that_are_no_certificate_are_refused_before_the_start(tmp_path):
    tls = certificate(tmp_path)
    with pytest.raises(ConfigError, match="certificate of the HTTP server cannot be used") as refused:
        served(tls=Tls(tls.key, tls.certificate))
    assert str(tls.key) in refused.value.where
    with pytest.raises(ConfigError, match="cannot be used"):
        served(tls=Tls(tmp_path / "nothing", tls.key))

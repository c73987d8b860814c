"""One set of login settings serves both clients, whichever way a cluster wants to know who is there."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.broker.port import Assigned, CommittedOffset, TopicSpec, Write
from pystreams.ids import TopicPartition
from tests.broker.following import Follower, follow_until
from tests.kafka.secure_server import (
    KEY_PASSWORD,
    PASSWORD,
    USER,
    Certificates,
    SecureServer,
    plain_login,
    quoted,
    token,
)
from tests.kafka.support import connect
from tests.live.support import eventually
from tests.unit.broker.log_helpers import deal


def by_password(mechanism: str, ca: Path) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(ca),
    }


def by_jaas(mechanism: str, login: str, ca: Path) -> dict[str, Any]:
    """As in a Java program's properties."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca),
    }


SCRAM_LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required\n"
    f"  username={quoted(USER)}\n  password={quoted(PASSWORD)};\n"
)
UNSECURED_LOGIN = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="600";'
)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_name_and_a_password_log_both_clients_in_and_no_client_logs_them_at_any_level(
    secure: SecureServer, certificates: Certificates, caplog: pytest.LogCaptureFixture, mechanism: str
):
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="kafka"):
        use_everything(secure.sasl, by_password(mechanism, certificates.ca))
    assert "SaslAuthenticateRequest" in caplog.text
    assert secrets_in(caplog.text) == []


def secrets_in(logged: str, *more: str) -> list[str]:
    return [one for one in (PASSWORD, repr(PASSWORD)[1:-1], "looking-glass", *more) if one in logged]


@pytest.mark.parametrize(
    "mechanism,login",
    [
        ("PLAIN", plain_login(USER, PASSWORD)),
        ("SCRAM-SHA-512", SCRAM_LOGIN),
        ("OAUTHBEARER", UNSECURED_LOGIN),
    ],
    ids=["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"],
)
def test_the_login_of_a_java_program_logs_both_clients_in(
    secure: SecureServer, certificates: Certificates, mechanism: str, login: str
):
    use_everything(secure.sasl, by_jaas(mechanism, login, certificates.ca))


def test_a_certificate_with_an_encrypted_key_identifies_both_clients(
    secure: SecureServer, certificates: Certificates
):
    use_everything(
        secure.mutual,
        {
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates.ca),
            "ssl.certificate.location": str(certificates.client),
            "ssl.key.location": str(certificates.encrypted_key),
            "ssl.key.password": KEY_PASSWORD,
        },
    )


@pytest.mark.parametrize("inline", [False, True], ids=["files", "texts"])
def test_the_pem_stores_of_a_java_program_identify_both_clients(
    secure: SecureServer, certificates: Certificates, *, inline: bool
):
    stores = (
        {
            "ssl.truststore.certificates": certificates.ca.read_text(),
            "ssl.keystore.certificate.chain": certificates.client.read_text(),
            "ssl.keystore.key": certificates.encrypted_key.read_text(),
            "ssl.key.password": KEY_PASSWORD,
        }
        if inline
        else {
            "ssl.truststore.location": str(certificates.ca),
            "ssl.keystore.location": str(certificates.client_store),
        }
    )
    types = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    use_everything(secure.mutual, {"security.protocol": "SSL", **types, **stores})


@pytest.mark.parametrize("off", ["", "none"])
def test_without_the_host_check_a_certificate_of_another_name_will_do(
    secure: SecureServer, certificates: Certificates, off: str
):
    address = f"127.0.0.1:{secure.sasl_port}"  # the certificate is for localhost
    settings = by_password("SCRAM-SHA-512", certificates.ca)
    use_everything(address, {**settings, "ssl.endpoint.identification.algorithm": off})


def test_a_client_may_have_a_login_of_its_own(secure: SecureServer, certificates: Certificates):
    settings = by_password("PLAIN", certificates.ca)
    settings |= {"producer.sasl.mechanism": "SCRAM-SHA-256", "admin.sasl.mechanism": "SCRAM-SHA-512"}
    use_everything(secure.sasl, settings)


def test_no_client_logs_a_token_at_any_level(
    secure: SecureServer, certificates: Certificates, caplog: pytest.LogCaptureFixture
):
    given: list[str] = []

    def provider() -> tuple[str, float]:
        given.append(token(600))
        return given[-1], time.time() + 600

    settings = by_password("OAUTHBEARER", certificates.ca)
    del settings["sasl.username"], settings["sasl.password"]
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="kafka"):
        use_everything(secure.sasl, settings, oauth_token_provider=provider)
    assert "SaslAuthenticateRequest" in caplog.text
    assert given
    assert secrets_in(caplog.text, *given) == []


def test_a_name_may_have_characters_that_scram_uses_itself(secure: SecureServer, certificates: Certificates):
    secure.add_user("a=b,c", PASSWORD)
    settings = by_password("SCRAM-SHA-256", certificates.ca)
    use_everything(secure.sasl, {**settings, "sasl.username": "a=b,c"})


def test_the_extensions_of_a_java_program_go_with_its_token(secure: SecureServer, certificates: Certificates):
    login = UNSECURED_LOGIN.removesuffix(";") + ' unsecuredLoginExtension_logicalCluster="lkc-1";'
    use_everything(secure.sasl, by_jaas("OAUTHBEARER", login, certificates.ca))


@pytest.fixture(autouse=True)
def empty(secure: SecureServer) -> Iterator[None]:
    yield
    with closing(connect(secure.bootstrap_servers)) as broker, closing(broker.admin()) as admin:
        eventually(lambda: admin.group_members("g") == [])
        admin.delete_group("g")
        admin.delete_topics(["t"])


def use_everything(address: str, settings: Mapping[str, Any], **more: Any) -> None:
    """Create, write, join, read, commit, and look: the clients of an application, each at its work; and those of a
    hand-over, in a worker's process as well."""
    with ExitStack() as stack:
        broker = stack.enter_context(closing(connect(address, client_settings=settings, **more)))
        admin = stack.enter_context(closing(broker.admin()))
        producer = stack.enter_context(closing(broker.producer("p", "p")))
        consumers = [
            stack.enter_context(closing(broker.consumer("c", purpose))) for purpose in ("main", "restore")
        ]
        admin.create_topics([TopicSpec("t", 1, {"retention.ms": "-1"})])
        producer.send("t", 0, b"k", b"v", 1, ())
        member = stack.enter_context(closing(broker.member("a", "g", ["t"], bytes, deal("t", 1))))
        follower = Follower("a", member, [])
        follow_until(lambda: bool(follower.held), follower)
        assert isinstance(follower.events[0], Assigned)
        offsets = {TopicPartition("t", 0): CommittedOffset(1, "text")}
        producer.commit(offsets, member)
        assert admin.group_offsets("g") == offsets
        for consumer in consumers:
            consumer.assign({TopicPartition("t", 0): 0})
            batches = eventually(lambda consumer=consumer: consumer.poll(100))
            assert batches[0].values == [b"v"]
        opener = broker.opener()
        assert PASSWORD not in repr(opener)
        # A token provider of a test is a function in a function.
        worker = opener() if more else pickle.loads(pickle.dumps(opener))()
        transactions = stack.enter_context(closing(worker)).transactional_producer("w", "w")
        with closing(transactions):
            transactions.send("t", 0, b"k", b"w", 1, ())
            transactions.commit()
        with closing(broker.group_committer("h", "other", "h")) as committer:
            committer.commit([Write("t", 0, b"k", b"x", 1)], offsets)
        # The broker shows them a moment after the transaction has ended.
        eventually(lambda: admin.group_offsets("other") == offsets)
        admin.delete_group("other")

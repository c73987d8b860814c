"""The rows of the table of client settings for authentication and encryption.

Keys and certificates are given as PEM, by librdkafka's names (``ssl.ca.location``) or by Java's (``ssl.truststore.*``
with type PEM); ``security.py`` converts both into one form for librdkafka and kafka-python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pystreams.config.client_setting import ALL, ClientSetting, own, passed_on, refused
from pystreams.config.values import choice, flag, text

#: How to convert a Java keystore to PEM.
KEYTOOL: Final = (
    "keytool -importkeystore -srckeystore FILE -destkeystore all.p12 -deststoretype PKCS12,"
    " then openssl pkcs12 -in all.p12 -out all.pem -nodes"
)
_ONLY_PEM: Final = f"both clients read only PEM: {KEYTOOL}"
_JVM: Final = "it is for Java's own cryptography; librdkafka and Python use OpenSSL"
_OF_JAVA: Final = "it names a Java class: for OAUTHBEARER give the function oauth_token_provider"
_BROKERS: Final = "it is for checking tokens, which the broker does"
_ASSERTION: Final = (
    "signed assertions are not implemented: give the function oauth_token_provider, which returns a token"
)
_SASL_LOGIN: Final = "a token is fetched anew after 80 % of its lifetime, and failed attempts are repeated"
_KERBEROS: Final = (
    "confluent-kafka's wheels are built without Kerberos: use SCRAM, OAUTHBEARER or certificates"
)


def _protocol(value: object) -> str:
    """The protocol in capital letters: Java takes small letters, too."""
    text_given = value.upper() if isinstance(value, str) else value
    chosen: str = choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")(text_given)
    return chosen


def _mechanism(value: object) -> str:
    if value == "GSSAPI":
        raise ValueError(f"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; {_KERBEROS}")
    chosen: str = choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")(value)
    return chosen


def _store_type(value: object) -> str:
    if value != "PEM":
        raise ValueError(f"PEM; {_ONLY_PEM}")
    return "PEM"


def _host_check(value: object) -> str:
    """To switch the check off, Java takes an empty value, librdkafka ``none``."""
    if not isinstance(value, str) or value.lower() not in ("https", "none", ""):
        raise ValueError("https, or empty (or none) to accept certificates of other hosts")
    return "none" if value.lower() in ("none", "") else "https"


def _token_url(value: object) -> str:
    parts = urlsplit(text(value))
    if parts.scheme not in ("https", "http", "file") or parts.username or parts.password:
        raise ValueError("an https, http or file address without a password")
    return str(value)


_OAUTH: Final = "a token is fetched there with the client's id and secret; `file:` reads one from a file"

SECURITY_SETTINGS: Final[Mapping[str, ClientSetting]] = {
    "security.protocol": passed_on(
        ALL,
        _protocol,
        "PLAINTEXT",
        "security.protocol",
        "security_protocol",
    ),
    # Login
    "sasl.mechanism": passed_on(ALL, _mechanism, None, "sasl.mechanism", "sasl_mechanism"),
    "sasl.username": passed_on(ALL, text, None, "sasl.username", "sasl_plain_username"),
    "sasl.password": passed_on(ALL, text, None, "sasl.password", "sasl_plain_password"),
    "sasl.jaas.config": own(
        ALL, text, None, "parsed: sasl.username and sasl.password, or the options of OAUTHBEARER"
    ),
    "sasl.oauthbearer.token.endpoint.url": own(ALL, _token_url, None, _OAUTH),
    "sasl.oauthbearer.client.credentials.client.id": own(ALL, text, None, _OAUTH),
    "sasl.oauthbearer.client.credentials.client.secret": own(ALL, text, None, _OAUTH),
    "sasl.oauthbearer.scope": own(ALL, text, None, _OAUTH),
    "sasl.oauthbearer.header.urlencode": own(ALL, flag, "false", _OAUTH),
    # Encryption
    "ssl.ca.location": passed_on(ALL, text, None, "ssl.ca.location"),
    "ssl.certificate.location": passed_on(ALL, text, None, "ssl.certificate.location"),
    "ssl.key.location": passed_on(ALL, text, None, "ssl.key.location"),
    "ssl.key.password": passed_on(ALL, text, None, "ssl.key.password"),
    "ssl.crl.location": passed_on(ALL, text, None, "ssl.crl.location"),
    "ssl.cipher.suites": passed_on(ALL, text, None, "ssl.cipher.suites"),
    "ssl.endpoint.identification.algorithm": passed_on(
        ALL, _host_check, "https", "ssl.endpoint.identification.algorithm"
    ),
    "ssl.truststore.type": own(ALL, _store_type, None, "PEM"),
    "ssl.truststore.location": own(ALL, text, None, "`ssl.ca.location`, with ssl.truststore.type PEM"),
    "ssl.truststore.certificates": own(ALL, text, None, "librdkafka `ssl.ca.pem`"),
    "ssl.keystore.type": own(ALL, _store_type, None, "PEM"),
    "ssl.keystore.location": own(
        ALL, text, None, "`ssl.certificate.location` and `ssl.key.location`, with ssl.keystore.type PEM"
    ),
    "ssl.keystore.certificate.chain": own(ALL, text, None, "librdkafka `ssl.certificate.pem`"),
    "ssl.keystore.key": own(ALL, text, None, "librdkafka `ssl.key.pem`"),
    **refused(
        ALL,
        "ssl.truststore.password",
        "ssl.keystore.password",
        why=f"PEM files have no password; {_ONLY_PEM}",
    ),
    **refused(
        ALL,
        "ssl.enabled.protocols",
        "ssl.protocol",
        why="both clients use TLS 1.3 and 1.2, as Java does, and librdkafka does not let them be chosen",
    ),
    **refused(
        ALL,
        "security.providers",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        why=_JVM,
    ),
    **refused(
        ALL,
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        why=_OF_JAVA,
    ),
    **refused(
        ALL,
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        why=_KERBEROS,
    ),
    **refused(
        ALL,
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        why=_SASL_LOGIN,
    ),
    **refused(
        ALL,
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        why=_ASSERTION,
    ),
    **refused(
        ALL,
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        why=_BROKERS,
    ),
}

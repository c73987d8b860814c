"""Certificates and keys for kafka-python: the same PEM that librdkafka is told, in a context of Python's own."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pystreams.errors import ConfigError


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """``settings`` are one client's, by librdkafka's names. Raises ``ConfigError`` for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings["ssl.endpoint.identification.algorithm"] != "none"
    try:
        _trust(context, settings)
        _identify(context, settings)
        if "ssl.cipher.suites" in settings:
            context.set_ciphers(settings["ssl.cipher.suites"])
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise ConfigError(
            "The certificates for Kafka cannot be used",
            where=", ".join(
                f"{name}={value}" for name, value in settings.items() if name.endswith(".location")
            ),
            why=str(error),
            hint="PEM files are needed, and ssl.key.password if the key is encrypted",
        ) from None
    return context


def _trust(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    if "ssl.ca.location" in settings:
        context.load_verify_locations(settings["ssl.ca.location"])
    if "ssl.ca.pem" in settings:
        context.load_verify_locations(cadata=settings["ssl.ca.pem"])
    if "ssl.ca.location" not in settings and "ssl.ca.pem" not in settings:
        context.load_default_certs()
    if "ssl.crl.location" in settings:
        context.load_verify_locations(settings["ssl.crl.location"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    with ExitStack() as stack:
        certificate, key = (
            settings.get(f"ssl.{kind}.location") or _file(stack, settings.get(f"ssl.{kind}.pem"))
            for kind in ("certificate", "key")
        )
        if certificate is None:
            return
        # A function: without one, OpenSSL would ask for a missing password on the terminal.
        context.load_cert_chain(certificate, key, lambda: settings.get("ssl.key.password", ""))


def _file(stack: ExitStack, pem: str | None) -> str | None:
    """Python takes keys from files alone: one in a folder that only this user may read, for as long as it takes."""
    if pem is None:
        return None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "key.pem"
    path.write_text(pem, encoding="ascii")
    return str(path)

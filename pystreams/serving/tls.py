"""HTTPS: the certificate of a server, and the trust of clients in servers."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from pystreams.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tls:
    """The files (PEM) of a server's certificate chain (without the root) and of its key. ``ca``: the authorities that
    have signed the certificates of the other instances; None: the authorities that the system trusts, or the server's
    own certificate, which all instances may share. ``client_ca``: the authorities that have signed the certificates of
    permitted clients; None: clients need no certificate."""

    certificate: Path
    key: Path
    ca: Path | None = None
    client_ca: Path | None = None

    def check(self) -> None:
        """Raises ``ConfigError`` if the files cannot be used."""
        context = _trusting(ssl.Purpose.CLIENT_AUTH, self.client_ca)
        _show(context, self.certificate, self.key, "HTTP server")

    def trusting(self) -> ssl.SSLContext:
        """The TLS context for requests to the other instances, which shows the server's certificate on demand. Raises
        ``ConfigError``."""
        context = asking(self.ca, self.certificate, self.key)
        if self.ca is None:
            context.load_verify_locations(self.certificate)
        return context


def asking(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """The TLS context of a client. ``ca``: the authorities that it trusts; None: those that the system trusts.
    ``certificate`` and ``key``: shown to a server that demands a client certificate; None: there is none. All are PEM
    files. Raises ``ConfigError`` if they cannot be used."""
    context = _trusting(ssl.Purpose.SERVER_AUTH, ca)
    if certificate is not None:
        _show(context, certificate, key, "client")
    return context


def _trusting(purpose: ssl.Purpose, ca: Path | None) -> ssl.SSLContext:
    """A context that trusts an authority. Raises ``ConfigError``."""
    try:
        return ssl.create_default_context(purpose, cafile=ca)
    except OSError as error:
        raise ConfigError(
            "the certificates of the authority cannot be used",
            where=str(ca),
            why=str(error),
            hint="give those of the authority that has signed the certificates of the other side, as a PEM file",
        ) from None


def _show(context: ssl.SSLContext, certificate: Path, key: Path | None, owner: str) -> None:
    """Have ``context`` show this certificate. Raises ``ConfigError``."""
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigError(
            f"the certificate of the {owner} cannot be used",
            where=f"{certificate}, {key}",
            why=str(error),
            hint="give a certificate and its key as PEM files, the key without a password",
        ) from None

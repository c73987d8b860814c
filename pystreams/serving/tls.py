"""HTTPS: the certificate of a server, and whom those trust who ask one."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from pystreams.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tls:
    """The files (PEM) of a server's certificate, with those between it and its root, and of its key. ``ca``: the
    authorities that have signed those of the other instances; None: those that the system trusts, or the server's own
    certificate, which all instances may have. ``client_ca``: the authorities that have signed the certificates of those
    who may ask the server; None: it wants none."""

    certificate: Path
    key: Path
    ca: Path | None = None
    client_ca: Path | None = None

    def check(self) -> None:
        """Raises ``ConfigError`` if the files cannot be used."""
        context = _trusting(ssl.Purpose.CLIENT_AUTH, self.client_ca)
        _show(context, self.certificate, self.key, "HTTP server")

    def trusting(self) -> ssl.SSLContext:
        """How to ask the other instances: as a client that shows the server's certificate if it is asked for one.
        Raises ``ConfigError``."""
        context = asking(self.ca, self.certificate, self.key)
        if self.ca is None:
            context.load_verify_locations(self.certificate)
        return context


def asking(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """How a client asks a server. ``ca``: whom it trusts; None: the authorities that the system trusts. ``certificate``
    and ``key``: what it shows to a server that wants to know who asks; None: nothing. All are PEM files. Raises
    ``ConfigError`` if they cannot be used."""
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

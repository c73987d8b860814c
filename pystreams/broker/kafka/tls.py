"""Certificates and keys for kafka-python: the same PEM files as for librdkafka, in Python's own TLS context."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pystreams.config.security import java_name
from pystreams.errors import ConfigError

_CIPHERS: Final = (
    "give those of TLS 1.2 by the names that `openssl ciphers` prints; those of 1.3 are always on"
)
_IDENTITY: Final = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem")


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """``settings`` are one client's, by librdkafka's names. Raises ``ConfigError`` for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings["ssl.endpoint.identification.algorithm"] != "none"
    _check_files(settings)
    with _config_errors(settings, ("ssl.ca.location", "ssl.ca.pem"), "certificates as PEM are needed"):
        _trust(context, settings)
    with _config_errors(settings, ("ssl.crl.location",), "a list of revoked certificates as PEM is needed"):
        _revoke(context, settings)
    with _config_errors(settings, _IDENTITY, "PEM is needed, and ssl.key.password if the key is encrypted"):
        _identify(context, settings)
    with _config_errors(settings, ("ssl.cipher.suites",), _CIPHERS):
        if "ssl.cipher.suites" in settings:
            context.set_ciphers(settings["ssl.cipher.suites"])
    return context


def _check_files(settings: Mapping[str, str]) -> None:
    """Check that the files can be read, because OpenSSL's errors do not name the file."""
    for name, value in settings.items():
        if name.endswith(".location"):
            try:
                if not (name == "ssl.ca.location" and Path(value).is_dir()):
                    Path(value).open("rb").close()
            except OSError as error:
                raise ConfigError(
                    "A file for the connection to Kafka cannot be read",
                    where=f"{name}={value}",
                    why=error.strerror or str(error),
                    hint=f"looked for it from {Path.cwd()}" if not Path(value).is_absolute() else "",
                ) from None


@contextmanager
def _config_errors(settings: Mapping[str, str], names: Iterable[str], hint: str) -> Iterator[None]:
    """Turn errors inside into a ``ConfigError`` that names the settings ``names``, without showing keys or
    certificates."""
    try:
        yield
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        given = [name for name in names if name in settings]
        raise ConfigError(
            "The encrypted connection to Kafka cannot be set up",
            where=", ".join(
                java_name(name) if name.endswith(".pem") else f"{name}={settings[name]}" for name in given
            ),
            why=str(error.args[-1]),
            hint=hint,
        ) from None


def _trust(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    place = settings.get("ssl.ca.location")
    if place is not None and Path(place).is_dir():
        # The files are named by the hashes of their certificates, as `openssl rehash` does.
        context.load_verify_locations(capath=place)
    elif place is not None:
        context.load_verify_locations(place)
    if "ssl.ca.pem" in settings:
        context.load_verify_locations(cadata=settings["ssl.ca.pem"])
    if place is None and "ssl.ca.pem" not in settings:
        context.load_default_certs()


def _revoke(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
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
        # The password is a function, because without one OpenSSL would ask for a missing password on the terminal.
        context.load_cert_chain(certificate, key, lambda: settings.get("ssl.key.password", ""))


def _file(stack: ExitStack, pem: str | None) -> str | None:
    """A private temporary file with the key, because Python reads keys only from files."""
    if pem is None:
        return None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "key.pem"
    path.write_text(pem, encoding="ascii")
    return str(path)

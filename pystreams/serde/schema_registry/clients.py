"""The clients of schema registries, one per registry and process, and their errors as errors of pystreams."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any

from pystreams.config.secret import without_login
from pystreams.distribution import install_command
from pystreams.errors import (
    ConfigError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
    SerializationError,
)
from pystreams.serde.schema_registry.settings import SchemaRegistry

_PACKAGE = "confluent_kafka.schema_registry"

_clients: dict[SchemaRegistry, Any] = {}
_lock = Lock()


def client_of(registry: SchemaRegistry) -> Any:
    """The process's client (a ``SchemaRegistryClient``) of a registry, with its cache of schemas.

    Raises ``ConfigError`` for invalid settings of the login.
    """
    with _lock:
        client = _clients.get(registry)
        if client is None:
            client_class = clients_module("").SchemaRegistryClient
            try:
                client = client_class.new_client(registry.client_settings())
            except (ValueError, TypeError, OSError) as error:
                raise ConfigError(
                    f"the client of {registry!r} cannot be created",
                    why=without_login(str(error)),
                    hint="check the settings schema.registry.*",
                ) from None
            _clients[registry] = client
        return client


def close_clients() -> None:
    """Close the connections to all registries. The next use opens a new one."""
    with _lock:
        while _clients:
            _clients.popitem()[1].close()


def clients_module(name: str) -> ModuleType:
    """A module of confluent-kafka's clients, by its name in the package. Raises ``ConfigError`` if a package that it
    needs is not installed."""
    try:
        return import_module(f"{_PACKAGE}.{name}" if name else _PACKAGE)
    except ImportError as error:
        raise _not_installed(name, str(error)) from None


def check_installed(name: str, packages: tuple[str, ...]) -> None:
    """Raise ``ConfigError`` if a package that a format needs is not installed. Imports none of them."""
    for package in packages:
        if find_spec(package) is None:
            raise _not_installed(name, f"the package {package} is missing")


def _not_installed(name: str, why: str) -> ConfigError:
    extra = {"": "avro", "json_schema": "json-schema"}.get(name, name)
    return ConfigError("packages for schemas are not installed", why=why, hint=install_command(extra))


@contextmanager
def registry_errors(registry: SchemaRegistry, what: str, *, reading: bool = False) -> Iterator[None]:
    """Turn errors of the registry, or of the connection to it, while ``what`` was done, into errors of pystreams.

    Raises ``SchemaRegistryUnavailableError`` if it may answer later, ``SerializationError`` if it does not know the
    schema of a record that is read, else ``SchemaRegistryError``, also if a certificate is not trusted. Other errors
    pass.
    """
    import httpcore2
    import httpx2
    from authlib.common.errors import AuthlibBaseError
    from confluent_kafka.schema_registry import error as theirs

    try:
        yield
    except theirs.SchemaRegistryError as error:
        raise _refusal(error, registry, what, reading=reading) from None
    except (httpx2.TransportError, httpcore2.NetworkError, theirs.OAuthTokenError, OSError) as error:
        hint = _of_certificates(error)
        if hint:
            raise SchemaRegistryError(
                f"an encrypted connection to the schema registry cannot be made, {what}",
                where=repr(registry),
                why=without_login(str(error)),
                hint=hint,
            ) from None
        raise SchemaRegistryUnavailableError(
            f"the schema registry cannot be reached, {what}",
            where=repr(registry),
            why=f"{type(error).__name__}: {without_login(str(error))}".rstrip(": "),
            hint="check that it runs, and that schema.registry.url is right",
        ) from None
    except AuthlibBaseError as error:
        raise SchemaRegistryError(
            f"the login for the schema registry failed, {what}",
            where=repr(registry),
            why=type(error).__name__,
            hint="check the settings schema.registry.bearer.auth.*",
        ) from None


def _of_certificates(error: BaseException | None) -> str:
    """What to do, if an error is about certificates, which will be the same when they are tried again; else empty. The
    client's errors have that of TLS as their cause."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "name the authority that signed the registry's certificate (schema.registry.ssl.ca.location), and use the "
            "host name of the certificate in schema.registry.url"
        )
    # The registry's answer to the certificate of the client, or to none. TLS 1.2 has no name for the latter.
    reason = "" if error is None else error.reason or ""
    if any(part in reason for part in ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")):
        return (
            "give a certificate that the registry trusts: schema.registry.ssl.certificate.location, "
            "schema.registry.ssl.key.location"
        )
    return ""


def _refusal(error: Any, registry: SchemaRegistry, what: str, *, reading: bool) -> Exception:
    status = error.http_status_code
    answer = without_login(f"{error.error_message} (HTTP {status})")
    if status == 429 or status >= 500:
        return SchemaRegistryUnavailableError(
            f"the schema registry cannot answer now, {what}", where=repr(registry), why=answer
        )
    if status == 404 and reading:
        return SerializationError(
            f"the schema registry does not know the schema of a record, {what}",
            where=repr(registry),
            why=answer,
            hint="the record was written with another registry, or its schema was deleted",
        )
    hint = {
        401: "check the login: schema.registry.basic.auth.user.info or schema.registry.bearer.auth.*",
        403: "this login lacks a permission: ask the operator of the registry",
        404: "register the schema first, or let the serde do it (auto.register.schemas)",
        409: "give the new fields defaults, or ask who owns the subject to allow the change; state that was written "
        "with an older schema can also be deleted with `pystreams reset`",
        422: "the registry does not accept this schema: see its message",
    }.get(status, "")
    problem = {
        401: "refused the login",
        403: "refused the request",
        404: "does not have the schema",
        409: "refused a schema that is not compatible with the earlier ones",
        422: "refused an invalid schema",
    }.get(status, "refused the request")
    return SchemaRegistryError(
        f"the schema registry {problem}, {what}", where=repr(registry), why=answer, hint=hint
    )

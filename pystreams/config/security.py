"""Authentication and encryption of one client: Java's settings, converted into the form that both clients take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pystreams.config.jaas import jaas_options
from pystreams.config.security_table import KEYTOOL
from pystreams.errors import ConfigError

#: Java's names for the parts of PEM stores -> librdkafka's names.
_PEM_NAMES: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAVA_NAMES: Final = {pem: java for java, pem in _PEM_NAMES.items()}
_STORES: Final = {
    "ssl.truststore": ("ssl.ca.location",),
    "ssl.keystore": ("ssl.certificate.location", "ssl.key.location"),
}
_OAUTH: Final = "sasl.oauthbearer."
_CREDENTIALS: Final = f"{_OAUTH}client.credentials.client."
_UNSECURED: Final = "unsecuredLogin"
_EXTENSION: Final = re.compile(r"(?:extension|unsecuredLoginExtension)_(.+)")
_WAYS: Final = (
    "give the function oauth_token_provider, or sasl.oauthbearer.token.endpoint.url with the client's id"
    " and secret"
)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client fetches a token with its own id and secret (RFC 6749, 4.4)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    #: Whether id and secret are URL-encoded, as RFC 6749, 2.3.1 demands.
    urlencode: bool = False


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The client reads a token from a file each time it needs one."""

    url: str


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """The client makes an unsigned token: for development. Source: OAuthBearerUnsecuredLoginCallbackHandler."""

    claims: Mapping[str, Any]
    lifetime_s: float


TokenSource = ClientCredentials | TokenFile | UnsecuredToken


@dataclass(frozen=True, slots=True)
class Security:
    """``settings`` are those of one client, with logins and certificates by librdkafka's names; ``tokens`` is the
    source of OAUTHBEARER tokens, unless a function of the program is; ``extensions`` are sent with each token (RFC
    7628, 3.1)."""

    settings: Mapping[str, str] = field(repr=False)
    tokens: TokenSource | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


def security_of(settings: Mapping[str, str], *, has_token_provider: bool) -> Security:
    """``settings`` are one client's, by Java's names. Raises ``ConfigError`` for missing or contradictory settings."""
    plain = {name: value for name, value in settings.items() if not name.startswith(_OAUTH)}
    jaas = plain.pop("sasl.jaas.config", None)
    for store in _STORES:
        _unfold_store(store, plain)
    _check_key(plain)
    if "SASL" not in plain.get("security.protocol", ""):
        return Security(plain)
    mechanism = plain.get("sasl.mechanism")
    if mechanism is None:
        raise ConfigError(
            "sasl.mechanism is missing",
            why=f"security.protocol is {plain['security.protocol']}",
            hint="choose PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
        )
    options = {} if jaas is None else jaas_options(jaas, mechanism)
    if mechanism == "OAUTHBEARER":
        source = _token_source(settings, options, has_token_provider=has_token_provider)
        return Security(plain, source, _extensions(options))
    _add_password(plain, options, mechanism)
    return Security(plain)


def _unfold_store(store: str, plain: dict[str, str]) -> None:
    """Replace ``ssl.truststore.*`` or ``ssl.keystore.*`` by librdkafka's names of PEM files and texts."""
    kind, location = plain.pop(f"{store}.type", None), plain.pop(f"{store}.location", None)
    if location is not None and kind is None:
        raise ConfigError(
            f"{store}.type is missing",
            why=f"{store}.location names a file, and both clients can read only PEM files, not Java's other kinds",
            hint=f"set {store}.type=PEM; to convert JKS to PEM: {KEYTOOL}",
        )
    for name in _STORES[store] if location is not None else ():
        if name in plain:
            raise ConfigError(f"{name} and {store}.location are both given", hint="give only one of them")
        plain[name] = location or ""
    for name, pem_name in _PEM_NAMES.items():
        if name.startswith(store) and name in plain:
            if location is not None:
                raise ConfigError(f"{name} and {store}.location are both given", hint="give only one of them")
            plain[pem_name] = plain.pop(name)


def java_name(name: str) -> str:
    """Java's name of a librdkafka setting, or the setting's own name if it is the only one."""
    return _JAVA_NAMES.get(name, name)


def _check_key(plain: Mapping[str, str]) -> None:
    for kind in ("location", "pem"):
        certificate, key = f"ssl.certificate.{kind}" in plain, f"ssl.key.{kind}" in plain
        if certificate != key:
            missing, there = ("key", "certificate") if certificate else ("certificate", "key")
            raise ConfigError(
                f"{java_name(f'ssl.{there}.{kind}')} is given without {java_name(f'ssl.{missing}.{kind}')}",
                why="a client authenticates with certificate and key together",
                hint="if one PEM file holds both, name it in both settings",
            )


def _add_password(plain: dict[str, str], options: Mapping[str, str], mechanism: str) -> None:
    if options.get("tokenauth", "false").lower() == "true":
        raise ConfigError(
            "sasl.jaas.config asks for a delegation token",
            why="librdkafka does not support delegation tokens",
            hint="log in with a user's name and password",
        )
    for option in ("username", "password"):
        name = f"sasl.{option}"
        if option in options and name in plain:
            raise ConfigError(f"{name} is given twice", why="sasl.jaas.config contains it, too")
        if option in options:
            plain[name] = options[option]
        if not plain.get(name):
            raise ConfigError(f"{name} is missing", why=f"sasl.mechanism is {mechanism}")


def _token_source(
    settings: Mapping[str, str], options: Mapping[str, str], *, has_token_provider: bool
) -> TokenSource | None:
    url = settings.get(f"{_OAUTH}token.endpoint.url")
    unsecured = {name for name in options if name.startswith(_UNSECURED) and not _EXTENSION.fullmatch(name)}
    ways = [has_token_provider, url is not None, bool(unsecured)]
    if sum(ways) != 1:
        raise ConfigError(
            "OAUTHBEARER has no source of tokens"
            if not any(ways)
            else "OAUTHBEARER has several sources of tokens",
            why="sasl.mechanism is OAUTHBEARER",
            hint=_WAYS,
        )
    if unsecured:
        return _unsecured(options)
    if url is None:
        return None
    if url.startswith("file:"):
        return TokenFile(url)
    client_id = settings.get(f"{_CREDENTIALS}id", options.get("clientId"))
    client_secret = settings.get(f"{_CREDENTIALS}secret", options.get("clientSecret"))
    if not client_id or not client_secret:
        raise ConfigError(f"{_CREDENTIALS}{'secret' if client_id else 'id'} is missing", hint=_WAYS)
    return ClientCredentials(
        url,
        client_id,
        client_secret,
        settings.get(f"{_OAUTH}scope", options.get("scope", "")),
        settings.get(f"{_OAUTH}header.urlencode") == "true",
    )


def _extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The extensions that some services demand beside the token, such as the id of the cluster."""
    return {match[1]: value for name, value in options.items() if (match := _EXTENSION.fullmatch(name))}


def _unsecured(options: Mapping[str, str]) -> UnsecuredToken:
    claims: dict[str, Any] = {}
    try:
        for name, value in options.items():
            kind, _, claim = name.removeprefix(_UNSECURED).partition("_")
            if kind == "StringClaim":
                claims[claim] = value
            elif kind == "NumberClaim":
                claims[claim] = float(value)
            elif kind == "ListClaim" and value:
                claims[claim] = value[1:].split(value[0])
        lifetime_s = float(options.get(f"{_UNSECURED}LifetimeSeconds", 3600))
    except ValueError:
        raise ConfigError("sasl.jaas.config has an option that is not a number but must be one") from None
    principal = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    if not claims.get(principal):
        raise ConfigError(
            "sasl.jaas.config does not name a user",
            why=f"the unsecured token has no claim {principal!r}",
            hint=f'add {_UNSECURED}StringClaim_{principal}="NAME"',
        )
    return UnsecuredToken(claims, lifetime_s)

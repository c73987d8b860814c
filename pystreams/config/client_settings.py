"""Settings of Kafka's clients, given by Java's names with Java's prefixes, resolved for each client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pystreams.config.client_setting import PRECEDENCE, PREFIXES, ClientSetting, Role
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.secret import shown
from pystreams.config.security import Security, security_of
from pystreams.config.values import INT_MAX, as_text, trimmed
from pystreams.errors import ConfigError

_BY_UNDERSCORES: Final = {name.replace(".", "_"): name for name in CLIENT_SETTINGS}
_PREFIX_BY_UNDERSCORES: Final = {prefix.replace(".", "_"): prefix for prefix in PREFIXES}


def split_prefix(name: str) -> tuple[str, str]:
    """``producer_linger_ms`` as ``producer.`` and ``linger_ms``; without a prefix that is ``""``."""
    for underscored, prefix in _PREFIX_BY_UNDERSCORES.items():
        if name.startswith(underscored):
            return prefix, name.removeprefix(underscored)
    return "", name


def full_name(name: str, given_name: str) -> str | None:
    """Java's name, with its prefix, of a setting that is given with underscores; None if no client has the setting.

    Raises ``ConfigError`` if the setting is refused, or if the client of the prefix does not have it.
    """
    prefix, rest = split_prefix(name)
    java_name = _BY_UNDERSCORES.get(rest)
    if java_name is None:
        return None
    row = CLIENT_SETTINGS[java_name]
    if row.refused:
        raise ConfigError(f"{given_name} is not a setting here", why=row.refused)
    if prefix and PREFIXES[prefix] not in row.clients:
        raise ConfigError(
            f"{given_name} is not a setting here",
            why=f"{java_name} is a setting of the {' and the '.join(row.clients)}",
            hint=f"give it as {java_name}" + "".join(f", or {client}.{java_name}" for client in row.clients),
        )
    if row.only and prefix and not _folds(row, prefix):
        raise ConfigError(f"{given_name} is not a setting here", why=row.only.format(prefix=prefix))
    return prefix + java_name


def _folds(row: ClientSetting, prefix: str) -> bool:
    """Whether the setting with this prefix is for the main consumer, and so may be given as one of the application."""
    return row.clients == ("consumer",) and prefix in PRECEDENCE["main.consumer"]


def client_value(name: str, given: Any) -> str:
    """The value of the setting with this full name, as text. Raises ``ConfigError`` if it is not valid."""
    row = CLIENT_SETTINGS[split_prefix(name.replace(".", "_"))[1].replace("_", ".")]
    assert row.parse is not None
    try:
        return as_text(row.parse(trimmed(given)))
    except ValueError as expected:
        raise ConfigError(f"{name} cannot be {shown(name, given)}", why=f"expected {expected}") from None


def client_settings(given: Any) -> Mapping[str, str]:
    """Client settings with names of any spelling, as full names with values as text. Raises ``ConfigError``, and
    ``ValueError`` if ``given`` is not a mapping."""
    if not isinstance(given, Mapping):
        raise ValueError("a mapping of settings of Kafka's clients, such as {'producer.linger.ms': 5}")  # noqa: TRY004
    found = {}
    for given_name, value in given.items():
        name = full_name(str(given_name).strip().replace(".", "_").replace("-", "_"), str(given_name))
        if name is None:
            raise ConfigError(f"{given_name} is not a setting of Kafka's clients")
        if name in CLIENT_SETTINGS and CLIENT_SETTINGS[name].held_by:
            raise ConfigError(
                f"{given_name} is a setting of the application",
                hint=f"give it by itself, as {CLIENT_SETTINGS[name].held_by}",
            )
        if name in found:
            raise ConfigError(
                f"{name} is given twice", hint="the spellings with dots and with underscores are the same"
            )
        found[name] = client_value(name, value)
    return found


def given_for(settings: Mapping[str, str], role: Role) -> dict[str, str]:
    """The settings given for one client, without prefixes; the more specific prefix wins."""
    client = PREFIXES[PRECEDENCE[role][1]]
    found = {}
    for prefix in PRECEDENCE[role]:
        for name, row in CLIENT_SETTINGS.items():
            if client in row.clients and not row.held_by and prefix + name in settings:
                found[name] = settings[prefix + name]
    return found


def in_force(settings: Mapping[str, str], role: Role) -> dict[str, str]:
    """All settings of one client by their Java names, defaults included, without those that the client decides itself.

    Raises ``ConfigError`` for settings that contradict each other.
    """
    client = PREFIXES[PRECEDENCE[role][1]]
    given = given_for(settings, role)
    found = {}
    for name, row in CLIENT_SETTINGS.items():
        value = given.get(name, row.default_for(client, role)) if client in row.clients else None
        if value is not None and not row.held_by:
            found[name] = value
    _fit_pauses(found, given)
    if role == "producer":
        _fit_delivery_timeout(found, given)
    if role == "restore.consumer":
        _restore_what_is_committed(found, settings)
    return found


def _fit_pauses(found: dict[str, str], given: Mapping[str, str]) -> None:
    """Source: CommonClientConfigs.postProcessReconnectBackoffConfigs, ExponentialBackoff."""
    # A longer first pause must not be cut by the default maximum.
    if "reconnect.backoff.ms" in given and "reconnect.backoff.max.ms" not in given:
        found["reconnect.backoff.max.ms"] = given["reconnect.backoff.ms"]
    for pause in ("reconnect.backoff", "retry.backoff"):
        found[f"{pause}.ms"] = min(found[f"{pause}.ms"], found[f"{pause}.max.ms"], key=int)


def _restore_what_is_committed(found: dict[str, str], settings: Mapping[str, str]) -> None:
    """Read only committed records of changelogs and hand-over records, independent of ``isolation.level`` for
    consumers in general: it is meant for input topics."""
    name = "isolation.level"
    if settings.get(f"restore.consumer.{name}") == "read_uncommitted":
        raise ConfigError(
            f"restore.consumer.{name} cannot be read_uncommitted",
            why="the records of a backfill hand-over that was killed would be restored as state",
            hint="leave it out; main.consumer.isolation.level may be read_uncommitted",
        )
    found[name] = "read_committed"


def _fit_delivery_timeout(found: dict[str, str], given: Mapping[str, str]) -> None:
    """The delivery timeout covers the wait for a batch and one request. Source:
    KafkaProducer.configureDeliveryTimeout."""
    needed_ms = min(int(found["linger.ms"]) + int(found["request.timeout.ms"]), INT_MAX)
    if int(found["delivery.timeout.ms"]) >= needed_ms:
        return
    if "delivery.timeout.ms" in given:
        raise ConfigError(
            f"delivery.timeout.ms ({found['delivery.timeout.ms']}) is below"
            f" linger.ms + request.timeout.ms ({needed_ms})",
            why="a record would expire before its first request was answered",
            hint="raise delivery.timeout.ms, or lower producer.linger.ms or producer.request.timeout.ms",
        )
    found["delivery.timeout.ms"] = str(needed_ms)


def held_by_application(settings: Mapping[str, str]) -> dict[str, str]:
    """Fields of ``StreamsConfig`` that were given as settings of the main consumer."""
    return {
        row.held_by: settings[prefix + name]
        for name, row in CLIENT_SETTINGS.items()
        for prefix in PRECEDENCE["main.consumer"][1:]
        if row.held_by and prefix + name in settings
    }


def client_security(settings: Mapping[str, str], role: Role, *, has_token_provider: bool) -> Security:
    """All settings of one client, with login and certificates in librdkafka's names. Raises ``ConfigError``."""
    given = given_for(settings, role)
    unused = [name for name in given if name.startswith(("sasl.", "ssl."))]
    if "security.protocol" not in given and unused:
        raise ConfigError(
            "security.protocol is missing",
            why=f"without it, {unused[0]} has no effect, and the connection is neither encrypted nor authenticated",
            hint="choose SSL, SASL_SSL or SASL_PLAINTEXT",
        )
    if has_token_provider and given.get("sasl.mechanism") != "OAUTHBEARER":
        raise ConfigError(
            "oauth_token_provider is given, but sasl.mechanism is not OAUTHBEARER",
            hint="set security.protocol to SASL_SSL and sasl.mechanism to OAUTHBEARER",
        )
    return security_of(in_force(settings, role), has_token_provider=has_token_provider)

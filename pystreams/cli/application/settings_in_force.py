"""The settings in force of an application and of each of its clients, by Java's names, with the origin of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pystreams.config import StreamsConfig, is_secret
from pystreams.config.client_setting import PRECEDENCE, Role
from pystreams.config.client_settings import client_security, in_force
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.secret import without_login

#: Name, value, origin.
Row = tuple[str, str, str]

_DEFAULT: Final = "default"
_TITLES: Final[Mapping[Role, str]] = {
    "main.consumer": "Kafka: the consumer of inputs",
    "restore.consumer": "Kafka: the consumer that restores stores",
    "producer": "Kafka: the producer",
    "admin": "Kafka: the admin client",
}


def settings_in_force(config: StreamsConfig, origins: Mapping[str, str]) -> dict[str, list[Row]]:
    """Sections, each with a title. Raises ``ConfigError`` for clients whose login is not complete."""
    sections = {"The application": _application(config, origins)}
    if config.on_kafka:
        for role in PRECEDENCE:
            client_security(
                config.client_settings, role, has_token_provider=config.oauth_token_provider is not None
            )
        sections |= _clients(config, origins)
    return sections


def _application(config: StreamsConfig, origins: Mapping[str, str]) -> list[Row]:
    rows = []
    for name, value in config.in_force().items():
        java_name = name.replace("_", ".")
        if name == "client_settings":
            continue
        if name in ("topic_config", "serde_settings", "client_tags"):
            rows += [
                (full, _shown(full, text), origins.get(full, _DEFAULT))
                for full, text in _in_parts(config, name).items()
            ]
            continue
        prefixed = [prefix + java_name for prefix in reversed(PRECEDENCE["main.consumer"]) if prefix]
        origin = next((origins[given] for given in (*prefixed, name) if given in origins), _DEFAULT)
        rows.append((java_name, value, origin))
    return rows


def _in_parts(config: StreamsConfig, name: str) -> Mapping[str, str]:
    """Full names and values of settings that have several parts."""
    if name == "serde_settings":
        return config.serde_settings
    if name == "client_tags":
        return {f"client.tag.{tag}": value for tag, value in config.client_tags.items()}
    return {f"topic.{setting}": text for setting, text in config.topic_config.items()}


def _clients(config: StreamsConfig, origins: Mapping[str, str]) -> dict[str, list[Row]]:
    """Settings that all clients share are in a section of their own, so that the other sections are short."""
    values: dict[Role, Mapping[str, str]] = {role: in_force(config.client_settings, role) for role in _TITLES}
    sections: dict[str, list[Row]] = {"Kafka: all clients": []}
    sections.update((title, []) for title in _TITLES.values())
    for name in CLIENT_SETTINGS:
        found: dict[Role, tuple[str, str]] = {
            role: (of_role[name], _origin(name, role, origins))
            for role, of_role in values.items()
            if name in of_role
        }
        if len(found) == len(_TITLES) and len(set(found.values())) == 1:
            value, origin = found["admin"]
            sections["Kafka: all clients"].append((name, _shown(name, value), origin))
            continue
        for role, (value, origin) in found.items():
            sections[_TITLES[role]].append((f"{role}.{name}", _shown(name, value), origin))
    return sections


def _origin(name: str, role: Role, origins: Mapping[str, str]) -> str:
    given = (prefix + name for prefix in reversed(PRECEDENCE[role]))
    return next((origins[full] for full in given if full in origins), _DEFAULT)


def _shown(name: str, value: str) -> str:
    return "[hidden]" if is_secret(name) else without_login(value)

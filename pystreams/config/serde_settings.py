"""Settings of serdes that work with a schema registry, by Confluent's names.

``schema.registry.url`` is its address. The other settings with the prefix ``schema.registry.`` are those of
confluent-kafka's ``SchemaRegistryClient``; Java's names for the login, without the prefix (``basic.auth.user.info``),
mean the same. All other settings without the prefix control how serdes use schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pystreams.config.secret import shown
from pystreams.config.values import Parse, as_text, choice, duration, flag, number, text, trimmed
from pystreams.errors import ConfigError

PREFIX: Final = "schema.registry."


def _url(given: Any) -> str:
    """One address, or several with commas between; when one does not answer, the client asks the next."""
    parts = given if isinstance(given, list | tuple) else str(given).split(",")
    urls = [str(part).strip().rstrip("/") for part in parts]
    if not all(re.fullmatch(r"https?://[^\s/]\S*|mock://\S*", url) for url in urls):
        raise ValueError(
            "http://HOST:PORT or https://HOST:PORT, several with commas between, or mock://NAME in tests"
        )
    return ",".join(urls)


def _login(given: Any) -> str:
    if not isinstance(given, str) or ":" not in given:
        raise ValueError("USER:PASSWORD")
    return given


def _subject(given: Any) -> str:
    """A subject name strategy, given as a word or as the name of Java's class."""
    name = str(given).rpartition(".")[2]
    word = _JAVA_STRATEGIES.get(name, name.lower())
    if word not in SUBJECT_STRATEGIES:
        raise ValueError(" or ".join(SUBJECT_STRATEGIES))
    return word


#: The subject name strategies for a topic's keys or values. Source: io.confluent.kafka.serializers.subject.
SUBJECT_STRATEGIES: Final = ("topic", "record", "topic_record")
_JAVA_STRATEGIES: Final = {
    "TopicNameStrategy": "topic",
    "RecordNameStrategy": "record",
    "TopicRecordNameStrategy": "topic_record",
}

#: How serdes use schemas. Source: io.confluent.kafka.serializers.AbstractKafkaSchemaSerDeConfig.
SERDE_SETTINGS: Final[Mapping[str, Parse]] = {
    "auto.register.schemas": flag,
    "normalize.schemas": flag,
    "use.latest.version": flag,
    "key.subject.name.strategy": _subject,
    "value.subject.name.strategy": _subject,
}

#: Settings of the registry's client, each with its parser. Source: confluent_kafka.schema_registry.
CLIENT_SETTINGS: Final[Mapping[str, Parse]] = {
    "url": _url,
    "basic.auth.credentials.source": choice("USER_INFO", "URL"),
    "basic.auth.user.info": _login,
    "bearer.auth.credentials.source": choice("OAUTHBEARER", "STATIC_TOKEN"),
    "bearer.auth.token": text,
    "bearer.auth.issuer.endpoint.url": text,
    "bearer.auth.client.id": text,
    "bearer.auth.client.secret": text,
    "bearer.auth.scope": text,
    "bearer.auth.logical.cluster": text,
    "bearer.auth.identity.pool.id": text,
    "ssl.ca.location": text,
    "ssl.certificate.location": text,
    "ssl.key.location": text,
    "ssl.key.password": text,
    "proxy": text,
    "timeout": number(1, " of seconds"),
    "cache.capacity": number(1),
    "cache.latest.ttl.sec": number(1, " of seconds"),
    "max.retries": number(0),
    "retries.wait.ms": duration(),
    "retries.max.wait.ms": duration(),
}

_ALL: Final[Mapping[str, Parse]] = {
    **{PREFIX + name: parse for name, parse in CLIENT_SETTINGS.items()},
    **SERDE_SETTINGS,
}
_BY_UNDERSCORES: Final = {
    **{name.replace(".", "_"): name for name in _ALL},
    **{
        name.replace(".", "_"): PREFIX + name
        for name in CLIENT_SETTINGS
        if name.startswith(("basic.auth.", "bearer.auth."))
    },
}


def serde_setting(name: str) -> str | None:
    """The full name of a serde setting that is given with underscores; None if it is not a serde setting."""
    return _BY_UNDERSCORES.get(name)


def known_serde_settings() -> list[str]:
    """The full names of all serde settings."""
    return list(_ALL)


def serde_value(name: str, given: Any) -> str:
    """The value of the setting with this full name, as text. Raises ``ConfigError`` if it is not valid."""
    try:
        return as_text(_ALL[name](trimmed(given)))
    except ValueError as expected:
        raise ConfigError(f"{name} cannot be {shown(name, given)}", why=f"expected {expected}") from None


def serde_settings(given: Any) -> Mapping[str, str]:
    """Serde settings with names of any spelling, as full names with values as text. Raises ``ConfigError``, and
    ``ValueError`` if ``given`` is not a mapping."""
    if not isinstance(given, Mapping):
        raise ValueError(  # noqa: TRY004 - a ValueError is what says "not this value" here
            "a mapping of settings of serdes, such as {'schema.registry.url': 'http://localhost:8081'}"
        )
    found: dict[str, str] = {}
    for given_name, value in given.items():
        name = serde_setting(str(given_name).strip().replace(".", "_").replace("-", "_"))
        if name is None:
            raise ConfigError(f"{given_name} is not a setting of serdes")
        if name in found:
            raise ConfigError(
                f"{name} is given twice", hint="the spellings with dots and with underscores are the same"
            )
        found[name] = serde_value(name, value)
    return found

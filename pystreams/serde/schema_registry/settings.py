"""The settings of a serde: its schema registry, and how it uses schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, TypeAlias, TypedDict

from pystreams.config.secret import without_login
from pystreams.config.serde_settings import CLIENT_SETTINGS, PREFIX, SUBJECT_STRATEGIES, serde_value
from pystreams.errors import ConfigError
from pystreams.nearest import check_keywords

#: The part of a record that a schema is for.
Part: TypeAlias = Literal["key", "value"]

#: A subject name strategy: ``topic``, ``record``, ``topic_record``, or a function of topic, part and the record's name.
SubjectName: TypeAlias = str | Callable[[str, Part, str | None], str]

_OF_THE_PROGRAM: dict[str, Callable[[str], Any]] = {
    "timeout": float,
    "cache.capacity": int,
    "cache.latest.ttl.sec": float,
    "max.retries": int,
    "retries.wait.ms": int,
    "retries.max.wait.ms": int,
}
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A schema registry: its address and login.

    ``url`` may contain several addresses with commas between; when one does not answer, the client asks the next.
    ``mock://NAME`` is a registry within the process, for tests. ``settings`` are those of confluent-kafka's
    ``SchemaRegistryClient`` (``basic.auth.user.info``, ``ssl.ca.location``). Raises ``ConfigError`` for others.
    """

    url: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", serde_value(f"{PREFIX}url", self.url))
        for name in self.settings:
            if name not in CLIENT_SETTINGS or name == "url":
                raise ConfigError(
                    f"{name} is not a setting of a schema registry's client",
                    hint=f"choose one of {', '.join(n for n in CLIENT_SETTINGS if n != 'url')}",
                )
        checked = {name: serde_value(PREFIX + name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", checked)

    def __repr__(self) -> str:
        return f"SchemaRegistry({without_login(self.url)!r})"

    def __hash__(self) -> int:
        return hash((self.url, *sorted(self.settings.items())))

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self | None:
        """The registry in an application's settings; None if they have none."""
        own = {
            name.removeprefix(PREFIX): value for name, value in settings.items() if name.startswith(PREFIX)
        }
        url = own.pop("url", None)
        return None if url is None else cls(url, own)

    @classmethod
    def given(cls, registry: SchemaRegistry | str | None) -> SchemaRegistry | None:
        """``registry`` itself, or the registry with this address."""
        return cls(registry) if isinstance(registry, str) else registry

    def client_settings(self) -> dict[str, Any]:
        """The arguments of confluent-kafka's client."""
        given = {n: _OF_THE_PROGRAM.get(n, str)(value) for n, value in self.settings.items()}
        # It only names the setting with the login, which the client finds by itself.
        given.pop("basic.auth.credentials.source", None)
        return {"timeout": _TIMEOUT_S, **given, "url": self.url}


class SchemaArguments(TypedDict, total=False):
    """The keyword arguments of every serde with a schema registry; ``SchemaUse`` explains them."""

    registry: SchemaRegistry | str | None
    auto_register: bool | None
    normalize: bool | None
    use_latest_version: bool | None
    key_subject: SubjectName | None
    value_subject: SubjectName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaUse:
    """How a serde uses schemas of its registry. None: the application's settings decide.

    ``auto_register``: register a schema that its subject does not have (default); otherwise it must exist.
    ``normalize``: let the registry compare schemas by meaning. ``use_latest_version``: write with the subject's newest
    schema instead of the serde's. ``key_subject`` and ``value_subject``: the subject name strategy (default: by topic,
    ``orders-value``).
    """

    registry: SchemaRegistry | None = None
    auto_register: bool | None = None
    normalize: bool | None = None
    use_latest_version: bool | None = None
    key_subject: SubjectName | None = None
    value_subject: SubjectName | None = None

    def __post_init__(self) -> None:
        for subject in (self.key_subject, self.value_subject):
            if subject is not None and not callable(subject) and subject not in SUBJECT_STRATEGIES:
                raise ConfigError(
                    f"{subject!r} is not a subject name strategy",
                    hint=f"give {', '.join(SUBJECT_STRATEGIES)}, or a function of (topic, 'key' or 'value', record "
                    "name)",
                )
        if self.use_latest_version and self.auto_register:
            raise ConfigError(
                "auto_register and use_latest_version contradict each other",
                why="one writes with the serde's schema, the other with the subject's newest",
                hint="choose one",
            )

    @classmethod
    def of(cls, serde: str, arguments: SchemaArguments) -> Self:
        """The arguments of the class ``serde``. Raises ``TypeError`` for an unknown one, as Python does."""
        check_keywords(serde, arguments, SchemaArguments.__annotations__)
        registry = SchemaRegistry.given(arguments.get("registry"))
        said: dict[str, Any] = {**arguments, "registry": registry}
        return cls(**said)

    def or_of(self, settings: Mapping[str, str]) -> SchemaUse:
        """A copy in which an application's settings replace None."""
        flags = {
            "auto_register": "auto.register.schemas",
            "normalize": "normalize.schemas",
            "use_latest_version": "use.latest.version",
        }
        of_application: dict[str, Any] = {
            name: settings[full] == "true" for name, full in flags.items() if full in settings
        }
        for part in ("key", "value"):
            of_application[f"{part}_subject"] = settings.get(f"{part}.subject.name.strategy")
        of_application["registry"] = SchemaRegistry.of(settings)
        missing = {
            name: value
            for name, value in of_application.items()
            if value is not None and getattr(self, name) is None
        }
        if self.auto_register is None and (self.use_latest_version or missing.get("use_latest_version")):
            # As in Java: if both settings are on, the newest version is used.
            missing["auto_register"] = False
        elif self.auto_register:
            missing.pop("use_latest_version", None)
        return replace(self, **missing) if missing else self

    def __repr__(self) -> str:
        said = (
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) is not None
        )
        return f"SchemaUse({', '.join(said)})"

"""How pystreams treats one setting of Kafka's clients: a row of the table in ``client_table.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pystreams.config.values import Parse

#: The kinds of clients in Java, each with its own settings.
Client = Literal["consumer", "producer", "admin"]
#: The clients of an application. The global consumer reads the topics of global tables.
Role = Literal["main.consumer", "restore.consumer", "global.consumer", "producer", "admin"]

CONSUMER: Final[tuple[Client, ...]] = ("consumer",)
PRODUCER: Final[tuple[Client, ...]] = ("producer",)
ADMIN: Final[tuple[Client, ...]] = ("admin",)
ALL: Final[tuple[Client, ...]] = ("consumer", "producer", "admin")

#: Prefixes of settings, and the kind of client that each is for. A setting without a prefix is for all clients that
#: have it. Source: StreamsConfig.CONSUMER_PREFIX and the constants after it.
PREFIXES: Final[Mapping[str, Client]] = {
    "main.consumer.": "consumer",
    "restore.consumer.": "consumer",
    "global.consumer.": "consumer",
    "consumer.": "consumer",
    "producer.": "producer",
    "admin.": "admin",
}
#: The prefixes that apply to each client; a later one overrides an earlier. Source:
#: StreamsConfig.getMainConsumerConfigs.
PRECEDENCE: Final[Mapping[Role, tuple[str, ...]]] = {
    "main.consumer": ("", "consumer.", "main.consumer."),
    "restore.consumer": ("", "consumer.", "restore.consumer."),
    "global.consumer": ("", "consumer.", "global.consumer."),
    "producer": ("", "producer."),
    "admin": ("", "admin."),
}
ROLES: Final[tuple[Role, ...]] = tuple(PRECEDENCE)

Convert = Callable[[str], str]


def same(value: str) -> str:
    """The value unchanged: librdkafka takes the same one as Java."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetting:
    """One setting: passed on to the clients, implemented by pystreams itself (``by``), or refused (``refused``)."""

    clients: tuple[Client, ...]
    #: Checks a value; None: the setting is refused.
    parse: Parse | None = None
    #: The default: for all, or by kind and for single clients; None: the client's own.
    default: str | Mapping[Client | Role, str] | None = None
    #: librdkafka's properties, each with the function that converts Java's value.
    librdkafka: Mapping[str, Convert] = field(default_factory=dict)
    #: The name of kafka-python's argument.
    member: str = ""
    #: How pystreams itself implements the setting.
    by: str = ""
    #: The field of ``StreamsConfig`` that holds the setting when it is given without a prefix.
    held_by: str = ""
    #: Why the setting does not take a prefix; ``{prefix}`` stands for the prefix.
    only: str = ""
    #: Why pystreams does not have the setting, and what to use instead.
    refused: str = ""

    def default_for(self, client: Client, role: Role | None = None) -> str | None:
        """The default for this kind of client, or for one of them."""
        if not isinstance(self.default, Mapping):
            return self.default
        return self.default.get(role or client, self.default.get(client))


def passed_on(
    clients: tuple[Client, ...],
    parse: Parse,
    default: str | Mapping[Client | Role, str] | None,
    librdkafka: str | Mapping[str, Convert],
    member: str = "",
) -> ClientSetting:
    """A row for a setting that is passed on to the clients."""
    properties = {librdkafka: same} if isinstance(librdkafka, str) else librdkafka
    return ClientSetting(clients=clients, parse=parse, default=default, librdkafka=properties, member=member)


def own(
    clients: tuple[Client, ...],
    parse: Parse,
    default: str | None,
    by: str,
    *,
    held_by: str = "",
    only: str = "",
) -> ClientSetting:
    """A row for a setting that pystreams itself implements."""
    return ClientSetting(clients=clients, parse=parse, default=default, by=by, held_by=held_by, only=only)


def refused(clients: tuple[Client, ...], *names: str, why: str) -> dict[str, ClientSetting]:
    """Rows for settings that are refused, with the reason."""
    row = ClientSetting(clients=clients, refused=why)
    return dict.fromkeys(names, row)

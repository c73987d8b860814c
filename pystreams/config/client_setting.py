"""What becomes of one setting of Kafka's clients: a row of the table in ``client_table.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pystreams.config.values import Parse

#: The kinds of clients that Java has, each with its own settings.
Client = Literal["consumer", "producer", "admin"]
#: The clients of an application. The global consumer reads the topics of global tables.
Role = Literal["main.consumer", "restore.consumer", "global.consumer", "producer", "admin"]

CONSUMER: Final[tuple[Client, ...]] = ("consumer",)
PRODUCER: Final[tuple[Client, ...]] = ("producer",)
ADMIN: Final[tuple[Client, ...]] = ("admin",)
ALL: Final[tuple[Client, ...]] = ("consumer", "producer", "admin")

#: Prefixes of settings, and the kind of client that each is about. Without a prefix all clients are meant that know
#: the setting. Source: StreamsConfig.CONSUMER_PREFIX and those beside it.
PREFIXES: Final[Mapping[str, Client]] = {
    "main.consumer.": "consumer",
    "restore.consumer.": "consumer",
    "global.consumer.": "consumer",
    "consumer.": "consumer",
    "producer.": "producer",
    "admin.": "admin",
}
#: The prefixes that a client listens to; the later, the stronger. Source: StreamsConfig.getMainConsumerConfigs etc.
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
    """Java's value is librdkafka's."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetting:
    """Exactly one of three: told to the clients, done by pystreams itself (``by``), or refused (``refused``)."""

    clients: tuple[Client, ...]
    #: Checks a value; None: the setting is refused.
    parse: Parse | None = None
    #: What is in force if nothing is given, for all, or by kind and for single clients; None: what the client does.
    default: str | Mapping[Client | Role, str] | None = None
    #: librdkafka's properties, each with what makes its value out of Java's.
    librdkafka: Mapping[str, Convert] = field(default_factory=dict)
    #: kafka-python's argument.
    member: str = ""
    #: What pystreams does about it.
    by: str = ""
    #: The field of ``StreamsConfig`` that holds it, when it is given without a prefix.
    held_by: str = ""
    #: Why a prefix makes no sense; ``{prefix}`` stands for it.
    only: str = ""
    #: Why there is no such setting here, and what to do instead.
    refused: str = ""

    def default_for(self, client: Client, role: Role | None = None) -> str | None:
        """What is in force for this kind of client, or for one of them, if nothing is given."""
        if not isinstance(self.default, Mapping):
            return self.default
        return self.default.get(role or client, self.default.get(client))


def told(
    clients: tuple[Client, ...],
    parse: Parse,
    default: str | Mapping[Client | Role, str] | None,
    librdkafka: str | Mapping[str, Convert],
    member: str = "",
) -> ClientSetting:
    """A row whose value is handed on."""
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
    """A row that pystreams itself acts upon."""
    return ClientSetting(clients=clients, parse=parse, default=default, by=by, held_by=held_by, only=only)


def refused(clients: tuple[Client, ...], *names: str, why: str) -> dict[str, ClientSetting]:
    """Rows that are there to say why not."""
    row = ClientSetting(clients=clients, refused=why)
    return dict.fromkeys(names, row)

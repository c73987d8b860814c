"""Checks names that users give, and generates the same names as Kafka Streams."""

from __future__ import annotations

import re
from typing import Final

from pystreams.errors import TopologyError

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_LENGTH_MAX = 249

#: Names that Java takes for generated ones when it names the steps around a repartition topic.
GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")

#: The ends of the names of internal topics.
CHANGELOG_SUFFIX: Final = "-changelog"
REPARTITION_SUFFIX: Final = "-repartition"

_GENERATED_HERE = re.compile(r".*-STATE-STORE-[0-9]{10}|K(STREAM|TABLE)-[A-Z-]+-[0-9]{10}(-.*)?")
_STORE_OF_TOPIC = re.compile(r"(?!K(?:STREAM|TABLE)-)(.+)-STATE-STORE-[0-9]{10}")


def is_generated(name: str) -> bool:
    """True if the name of a step or store looks like a generated one."""
    return _GENERATED_HERE.fullmatch(name) is not None


def topic_of_store(name: str) -> str:
    """The topic of a table whose store has this generated name; other names unchanged."""
    found = _STORE_OF_TOPIC.fullmatch(name)
    return name if found is None else found[1]


def checked(name: object) -> str:
    """``name``, if it is valid for topics and stores. Raises ``TopologyError`` if not. Source: Named.validate."""
    if (
        not isinstance(name, str)
        or not _LEGAL.fullmatch(name)
        or name in (".", "..")
        or len(name) > _LENGTH_MAX
    ):
        raise TopologyError(
            f"{name!r} cannot be a name",
            why=f"names have 1 to {_LENGTH_MAX} letters, digits, dots, underscores and hyphens",
        )
    return name


def changelog_topic(application_id: str, store: str) -> str:
    """The changelog topic of a store. Source: ProcessorStateManager.storeChangelogTopic."""
    return f"{application_id}-{store}{CHANGELOG_SUFFIX}"


class NameGenerator:
    """Numbers steps and stores with one counter, exactly as Java does.

    A number is used up even if the user gave the name, so that later generated names do not depend on that.
    """

    def __init__(self) -> None:
        self._next = 0

    def step(self, prefix: str, given: str | None = None) -> str:
        """``given``, or ``prefix`` and the next number. Uses up a number either way."""
        generated = f"{prefix}{self._next:010d}"
        self._next += 1
        return generated if given is None else checked(given)

    def store(self, prefix: str) -> str:
        """A generated name for a store."""
        return self.step(f"{prefix}STATE-STORE-")

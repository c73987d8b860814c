"""Merges settings from several sources: the program, the environment, the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pystreams.config.client_settings import client_settings, split_prefix
from pystreams.config.names import meant_setting, resolved
from pystreams.config.secret import shown
from pystreams.config.serde_settings import serde_settings
from pystreams.config.values import Parse, client_tags, topic_settings
from pystreams.errors import ConfigError

ENVIRONMENT_PREFIX: Final = "PYSTREAMS_"

#: Mappings that can be given in parts (``topic.retention.ms``); the parts of all sources are joined.
GATHERED: Final[Mapping[str, Parse]] = {
    "topic_config": topic_settings,
    "client_settings": client_settings,
    "serde_settings": serde_settings,
    "client_tags": client_tags,
}
#: The prefix of the names of the parts of some of them.
_PREFIXES: Final = {"topic_config": "topic.", "client_tags": "client.tag."}


def _parts(source: Mapping[str, Any], fields: frozenset[str]) -> Iterator[tuple[str, str, Any]]:
    """Field, part and value of every setting of a source. Raises ``ConfigError`` if the source gives one twice."""
    seen: set[tuple[str, str]] = set()
    for given_name, given in source.items():
        name, part = resolved(given_name, fields)
        for key, value in (
            _apart(given_name, name, given) if name in GATHERED and not part else [(part, given)]
        ):
            if (name, key) in seen:
                raise ConfigError(
                    f"{key or given_name} is given twice",
                    why=f"its second spelling is {given_name}",
                    hint="the spellings with dots, with underscores and in a mapping are the same",
                )
            seen.add((name, key))
            if value is not None:
                yield name, key, value


def _apart(given_name: str, name: str, given: Any) -> Iterable[tuple[str, Any]]:
    """The parts of a mapping that is given as a whole."""
    if given is None:
        return ()
    try:
        parts: Mapping[str, Any] = GATHERED[name](given)
    except ValueError as expected:
        raise ConfigError(
            f"{given_name} cannot be {shown(name, given)}", why=f"expected {expected}"
        ) from None
    return parts.items()


def merged(sources: tuple[Mapping[str, Any], ...], fields: frozenset[str]) -> dict[str, Any]:
    """The settings of all sources by their underscored names; the first source that has a setting wins; None does not
    count."""
    whole: dict[str, Any] = {}
    gathered: dict[str, dict[str, Any]] = {}
    for source in sources:
        for name, part, value in _parts(source, fields):
            if part:
                gathered.setdefault(name, {}).setdefault(part, value)
            else:
                whole.setdefault(name, value)
    return whole | gathered


def origins(sources: Mapping[str, Mapping[str, Any]], fields: frozenset[str]) -> dict[str, str]:
    """The source of each setting: the first in the order of ``sources`` that has it. Settings of clients and topics,
    and tags, have their own names (``producer.linger.ms``, ``topic.retention.ms``, ``client.tag.zone``)."""
    found: dict[str, str] = {}
    for label, source in sources.items():
        for name, part, _ in _parts(source, fields):
            full = _PREFIXES.get(name, "") + part if part else name
            found.setdefault(full, label)
    return found


def from_environment(
    environ: Mapping[str, str], fields: frozenset[str], check: Callable[[str, str, str], object]
) -> dict[str, str]:
    """The settings among environment variables. An empty variable counts as absent. Raises ``ConfigError`` for a name
    that is close to a setting's, and for a value that ``check`` (of field, part and value) refuses; all other
    variables are ignored."""
    found: dict[str, str] = {}
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or not value:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        try:
            check(*resolved(name, fields), value)
        except ConfigError as error:
            if error.why or split_prefix(name)[0] or meant_setting(name, fields):
                raise ConfigError(
                    error.what, where=f"environment variable {variable}", why=error.why, hint=error.hint
                ) from None
            continue
        found[name] = value
    return found

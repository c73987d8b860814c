"""An application's settings: flags win over the environment, which wins over what the application says itself."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from pystreams.cli.terminal.console import note, output, show_table
from pystreams.config import (
    ENVIRONMENT_PREFIX,
    StreamsConfig,
    is_secret,
    merge_settings,
    settings_from_environment,
)
from pystreams.errors import ConfigError


def settings_of(
    application: Any, pairs: Sequence[str] | None, *, default_id: str | None = None, **flags: Any
) -> StreamsConfig:
    """The configuration in force. ``pairs`` are those of ``--set``; a flag that is None was not given.

    ``default_id`` names an application that is not an ``App`` and was given no name, where the name hardly matters.
    Raises ``ConfigError`` for an unknown setting or a wrong value.
    """
    given, environment = given_settings(pairs, flags)
    own = getattr(application, "config", None)
    if isinstance(own, StreamsConfig):
        return own.override(given, environment)
    merged = merge_settings(given, environment, {"application_id": default_id})
    if "application_id" not in merged:
        raise ConfigError(
            "The application has no id",
            why="it is not an App, and the id names its consumer group, internal topics and state",
            hint="give it one: --application-id NAME",
        )
    return StreamsConfig.from_mapping(merged)


def given_settings(
    pairs: Sequence[str] | None, flags: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What goes over the application's own settings: the command line's, then the environment's."""
    given = merge_settings(flags, parse_pairs(pairs or (), "commit_interval_ms=1000"))
    return given, settings_from_environment(os.environ)


def parse_pairs(pairs: Sequence[str], example: str) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a mapping. Raises ``ConfigError`` for a text that is not a pair."""
    parsed = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            named = re.split(r"[^\w.-]", pair, maxsplit=1)[0]
            told = named if is_secret(named) else pair
            raise ConfigError(f"{told!r} is not a setting", hint=f"write NAME=VALUE, as in {example}")
        parsed[name.strip()] = value.strip()
    return parsed


def show_settings(application: Any, pairs: Sequence[str] | None, **flags: Any) -> None:
    """Print what is in force, and where each setting comes from.

    Raises ``ConfigError`` as ``settings_of`` does, and for a login that is not complete.
    """
    from pystreams.cli.application.settings_in_force import settings_in_force
    from pystreams.config import origins_of

    config = settings_of(application, pairs, **flags)
    from_environment = {name for name in flags if _is_from_environment(name, flags[name])}
    pairs_given = parse_pairs(pairs or (), "commit_interval_ms=1000")
    origins = origins_of(
        {
            "command line": {**_without(flags, from_environment), **pairs_given},
            "environment": settings_from_environment(os.environ),
            "program": _said_by(getattr(application, "config", None)),
        }
    )
    _print(settings_in_force(config, origins))
    if config.bootstrap_servers is None:
        note("Kafka's clients are not shown: the application runs on the embedded log.")


def _is_from_environment(flag: str, value: Any) -> bool:
    """Options take their values from the environment, too."""
    return value is not None and os.environ.get(ENVIRONMENT_PREFIX + flag.upper()) == str(value)


def _without(flags: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if name not in names}


def _said_by(config: Any) -> dict[str, Any]:
    """What the program has set, as far as it is not the default anyway."""
    if not isinstance(config, StreamsConfig):
        return {}
    values = {f.name: (getattr(config, f.name), f.default) for f in fields(config)}
    return {
        name: value
        for name, (value, default) in values.items()
        if (value if default is MISSING else value != default)
    }


def _print(sections: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """A table each on a terminal; elsewhere lines, whose names say which client they are about."""
    for title, rows in sections.items():
        if output().is_terminal:
            output().print(title, style="bold")
        show_table(["setting", "value", "from"], rows)

"""An application's settings: flags override the environment, which overrides the settings in the application."""

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

    ``default_id`` is the application id for a program that is not an ``App`` and has none, for commands that do not use
    the id. Raises ``ConfigError`` for an unknown setting or a wrong value.
    """
    given, environment = given_settings(pairs, flags)
    own = getattr(application, "config", None)
    if isinstance(own, StreamsConfig):
        return own.override(given, environment)
    merged = merge_settings(given, environment, {"application_id": default_id})
    if "application_id" not in merged:
        raise ConfigError(
            "The application has no id",
            why="only an App has an id of its own; it names the consumer group, the internal topics and the "
            "state",
            hint="give it one: --application-id NAME",
        )
    return StreamsConfig.from_mapping(merged)


def given_settings(
    pairs: Sequence[str] | None, flags: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings that override the application's own: those of the command line, then those of the environment."""
    given = merge_settings(flags, parse_pairs(pairs or (), "commit_interval_ms=1000"))
    return given, settings_from_environment(os.environ)


def parse_pairs(pairs: Sequence[str], example: str) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a mapping. Raises ``ConfigError`` for a text that is not a pair."""
    parsed = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            named = re.split(r"[^\w.-]", pair, maxsplit=1)[0]
            shown = named if is_secret(named) else pair
            raise ConfigError(f"{shown!r} is not a setting", hint=f"write NAME=VALUE, as in {example}")
        parsed[name.strip()] = value.strip()
    return parsed


def show_settings(application: Any, pairs: Sequence[str] | None, **flags: Any) -> None:
    """Print the settings in force, and the origin of each.

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
    if not config.on_kafka:
        note("The settings of Kafka clients are not shown: the application runs on the embedded log.")


def _is_from_environment(flag: str, value: Any) -> bool:
    """Whether an option got its value from the environment."""
    return value is not None and os.environ.get(ENVIRONMENT_PREFIX + flag.upper()) == str(value)


def _without(flags: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if name not in names}


def _said_by(config: Any) -> dict[str, Any]:
    """The settings that the program has set to another value than the default."""
    if not isinstance(config, StreamsConfig):
        return {}
    values = {f.name: (getattr(config, f.name), f.default) for f in fields(config)}
    return {
        name: value
        for name, (value, default) in values.items()
        if (value if default is MISSING else value != default)
    }


def _print(sections: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Print each section as a table on a terminal; elsewhere as lines, whose names begin with the client."""
    for title, rows in sections.items():
        if output().is_terminal:
            output().print(title, style="bold")
        show_table(["setting", "value", "from"], rows)

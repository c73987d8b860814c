"""An application's settings: flags win over the environment, which wins over what the application says itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pystreams.config import StreamsConfig, merge_settings, settings_from_environment
from pystreams.errors import ConfigError


def settings_of(
    application: Any, pairs: Sequence[str] | None, *, default_id: str | None = None, **flags: Any
) -> StreamsConfig:
    """The configuration in force. ``pairs`` are those of ``--set``; a flag that is None was not given.

    ``default_id`` names an application that is no ``App`` and was given no name, where the name hardly matters.
    Raises ``ConfigError`` for an unknown setting or a wrong value.
    """
    given = merge_settings(flags, parse_pairs(pairs or (), "commit_interval_ms=1000"))
    environment = settings_from_environment(os.environ)
    own = getattr(application, "config", None)
    if isinstance(own, StreamsConfig):
        return own.override(given, environment)
    merged = merge_settings(given, environment, {"application_id": default_id})
    if "application_id" not in merged:
        raise ConfigError(
            "The application has no id",
            why="it is no App, and the id names its consumer group, internal topics and state",
            hint="give it one: --application-id NAME",
        )
    return StreamsConfig.from_mapping(merged)


def parse_pairs(pairs: Sequence[str], example: str) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a mapping. Raises ``ConfigError`` for a text that is no pair."""
    parsed = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{pair!r} is no setting", hint=f"write NAME=VALUE, as in {example}")
        parsed[name.strip()] = value.strip()
    return parsed

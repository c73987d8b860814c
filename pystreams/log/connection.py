"""Finds the log to open: from the given settings, then from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pystreams.config import StreamsConfig, merge_settings, settings_from_environment
from pystreams.errors import ConfigError

#: Settings for the address of a log, for connecting to it, and for serdes.
_OF_A_LOG: Final = frozenset(
    {
        "bootstrap_servers",
        "client_id",
        "client_settings",
        "embedded_log",
        "oauth_token_provider",
        "replication_factor",
        "serde_settings",
    }
)


def log_config(given: Mapping[str, Any]) -> StreamsConfig:
    """The settings of a log: those ``given``, then those of the environment (``PYSTREAMS_...``).

    A given embedded log takes precedence over Kafka in the environment. Raises ``ConfigError`` for an unknown
    setting, for a setting that is not for a log, and for two logs.
    """
    merged = merge_settings(given)
    for name in sorted(merged.keys() - _OF_A_LOG):
        raise ConfigError(
            f"{name} is not a setting of a log",
            why="it is for running an application",
            hint="give it to the App; here only settings of the connection and of serdes are allowed",
        )
    if {"embedded_log", "bootstrap_servers"} <= merged.keys():
        raise ConfigError(
            "Both an embedded log and Kafka are given",
            why=f"embedded_log is {merged['embedded_log']}, bootstrap_servers is {merged['bootstrap_servers']}",
            hint="leave out one of them",
        )
    environment = merge_settings(settings_from_environment(os.environ))
    environment = {name: value for name, value in environment.items() if name in _OF_A_LOG}
    if "embedded_log" in merged:
        environment.pop("bootstrap_servers", None)
    return StreamsConfig(**merge_settings(merged, environment, {"application_id": "pystreams"}))

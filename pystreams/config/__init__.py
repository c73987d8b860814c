"""Settings of an application and of Kafka's clients: their names, values and sources.

Begin with ``streams_config``: ``StreamsConfig`` holds every setting of an application.

- ``values`` checks a value; ``names`` finds unknown and refused names; ``sources`` merges program, environment and
  command line.
- ``offset_reset`` and ``serde_settings``: settings with a syntax of their own. ``secret``: values that are never shown.
- ``group_protocol``: settings that have no effect if the broker assigns the tasks.
- Kafka's clients: ``client_table`` and ``security_table`` have a row (``client_setting``) for each of Java's settings,
  ``client_settings`` turns what was given into settings for both clients. ``security`` and ``jaas``: logins.
"""

from __future__ import annotations

from pystreams.config.offset_reset import offset_reset, reset_duration_ms
from pystreams.config.secret import is_secret
from pystreams.config.sources import ENVIRONMENT_PREFIX
from pystreams.config.streams_config import (
    DEFAULT_EMBEDDED_LOG,
    DEFAULT_STATE_DIR,
    StreamsConfig,
    merge_settings,
    origins_of,
    settings_from_environment,
)

__all__ = [
    "DEFAULT_EMBEDDED_LOG",
    "DEFAULT_STATE_DIR",
    "ENVIRONMENT_PREFIX",
    "StreamsConfig",
    "is_secret",
    "merge_settings",
    "offset_reset",
    "origins_of",
    "reset_duration_ms",
    "settings_from_environment",
]

"""Packages that tables need, which not every backfill has."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from pystreams.distribution import install_command
from pystreams.errors import ConfigError


def require_package(name: str, extra: str) -> None:
    """Raises ``ConfigError`` if a package is not installed; ``extra`` brings it."""
    if find_spec(name) is None:
        raise ConfigError(
            f"Archives in tables of this format need {name}",
            why=f"it is not installed for {sys.executable}",
            hint=f"install it: {install_command(f'backfill,{extra}')}",
        )

"""Reads the token for access to stores from a file, which the application and its clients share."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Final

from pystreams.errors import ConfigError

log = logging.getLogger(__name__)

#: A shorter token could be guessed.
_CHARACTERS_MIN: Final = 16


def read_token(path: Path) -> str:
    """The token in a file; logs a warning if all users may read it. Raises ``ConfigError``."""
    try:
        token = path.read_text(encoding="utf-8").strip()
        is_open = path.stat().st_mode & stat.S_IROTH
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token in {path} cannot be read", where=str(path), why=str(error)) from None
    if len(token) < _CHARACTERS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{path} has no token that keeps others out",
            where=str(path),
            why=f"a token has {_CHARACTERS_MIN} characters or more: letters, digits and signs of ASCII",
            hint=f"make one: openssl rand -hex 32 > {path}",
        )
    if is_open:
        log.warning("all users of this machine may read the token in %s: chmod 600 %s", path, path)
    return token

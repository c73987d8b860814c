"""Reads the token for access to stores from a file, which the application and its clients share."""

from __future__ import annotations

import logging
import shlex
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
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"the token in {path} cannot be read",
            where=str(path),
            why=why,
            hint=f"name the file that has the token, or {_how_to_make_one(path)}",
        ) from None
    if len(token) < _CHARACTERS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{path} has no token that keeps others out",
            where=str(path),
            why=f"a token has {_CHARACTERS_MIN} characters or more: letters, digits and signs of ASCII",
            hint=_how_to_make_one(path),
        )
    if is_open:
        log.warning("all users of this machine may read the token in %s: chmod 600 %s", path, path)
    return token


def _how_to_make_one(path: Path) -> str:
    """A token that nobody else can read."""
    return f"make one: (umask 077; openssl rand -hex 32 > {shlex.quote(str(path))})"

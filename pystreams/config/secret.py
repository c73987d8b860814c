"""Decides which values are secret, and formats the others for messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|(private|api|access|signing|keystore)[._-]?key|key[._-]pem"
    r"|(keystore|truststore)[._-]certificate|user[._-]info"
)
#: Names of settings with the place of a secret; their values are not secret.
_PLACE: Final = re.compile(r"[._-](url|location|file|id|provider)$")
#: By mistake, users may give these a secret instead: one text for all settings, or a token.
_NEIGHBOURS: Final = frozenset({"client_settings", "oauth_token_provider", "serde_settings"})
#: A login in an address: ``https://alice:secret@host``.
_LOGIN: Final = re.compile(r"[^\s,'\"/]*:[^\s,'\"]*@")
#: The parameters of an address, keys among them.
_PARAMETERS: Final = re.compile(r"(?<=://)([^\s?'\"]*)\?[^\s'\"]*")
_HIDDEN: Final = "[hidden]"


def is_secret(name: str) -> bool:
    """Whether the name of a setting says that its value is secret."""
    name = name.lower()
    return _SECRET.search(name) is not None and _PLACE.search(name) is None


def shown(name: str, value: Any) -> str:
    """A value as messages show it; a secret is never shown."""
    if isinstance(value, Mapping):
        return ", ".join(f"{n}={shown(str(n), v)}" for n, v in value.items()) or "none"
    if callable(value):
        return str(getattr(value, "__qualname__", None) or type(value).__qualname__)
    if is_secret(name) or name in _NEIGHBOURS:
        return _HIDDEN
    text = without_login(str(value) if isinstance(value, Path) else repr(value))
    return _PARAMETERS.sub(rf"\1?{_HIDDEN}", text)


def without_login(text: str) -> str:
    """A text that may contain addresses, without the logins in them."""
    return _LOGIN.sub(f"{_HIDDEN}@", text)

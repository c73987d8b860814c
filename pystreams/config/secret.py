"""Which values must never be shown, and how the others are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|(private|api|access|signing|keystore)[._-]?key|key[._-]pem"
    r"|(keystore|truststore)[._-]certificate|user[._-]info"
)
#: Where something is, not what it is.
_PLACE: Final = re.compile(r"[._-](url|location|file|id|provider)$")
#: What is given for these by mistake may be the secret itself: one text for all settings, or a token.
_NEIGHBOURS: Final = frozenset({"client_settings", "oauth_token_provider", "serde_settings"})
#: A login that stands in an address: ``https://alice:secret@host``.
_LOGIN: Final = re.compile(r"[^\s,'\"/]*:[^\s,'\"]*@")
_HIDDEN: Final = "[hidden]"


def is_secret(name: str) -> bool:
    """Whether a setting's value must not be shown, by its name."""
    name = name.lower()
    return _SECRET.search(name) is not None and _PLACE.search(name) is None


def shown(name: str, value: Any) -> str:
    """A value as it stands in messages; a secret is never shown."""
    if isinstance(value, Mapping):
        return ", ".join(f"{n}={shown(str(n), v)}" for n, v in value.items()) or "none"
    if callable(value):
        return str(getattr(value, "__qualname__", None) or type(value).__qualname__)
    if is_secret(name) or name in _NEIGHBOURS:
        return _HIDDEN
    return without_login(str(value) if isinstance(value, Path) else repr(value))


def without_login(text: str) -> str:
    """A text that may hold addresses, without the logins in them."""
    return _LOGIN.sub(f"{_HIDDEN}@", text)

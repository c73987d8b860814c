"""Places by path or URL: distinguishes the two, makes paths absolute for workers, and removes secrets for people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

#: User and password of a URL. Passwords may have slashes that nobody has escaped, so it reaches up to the ``@``.
_LOGIN: Final = re.compile(r"(?<=://)([^/@:\s]*):[^@\s]*(?=@)")
#: The settings of a file system, keys among them.
_SETTINGS: Final = re.compile(r"(://[^\s?]*)\?[^\s'\"]*")


def is_url(place: str) -> bool:
    """Whether a place is on some file system by its URL, not a path of this machine."""
    return "://" in place or place.startswith("file:")


def absolute(place: str) -> str:
    """A path of this machine as workers find it, whatever folder they run in; URLs are as they are."""
    return place if is_url(place) else str(Path(place).absolute())


def same_place(one: str, other: str) -> bool:
    """Whether two places are the same folder, however they are written."""
    return _normal(one) == _normal(other)


def overlapping(one: str, other: str) -> bool:
    """Whether two places are the same folder, or one is in the other."""
    places = f"{_normal(one)}/", f"{_normal(other)}/"
    return places[0].startswith(places[1]) or places[1].startswith(places[0])


def shown(text: str) -> str:
    """A place for people, or a text with places in it: without the passwords and settings that URLs may have."""
    return _SETTINGS.sub(r"\1", _LOGIN.sub(r"\1:***", text))


def _normal(place: str) -> str:
    place = re.sub(r"^file:/+", "/", place)
    # Hadoop's name for the same file system.
    place = re.sub(r"^s3a://", "s3://", place)
    return place.rstrip("/") if is_url(place) else str(Path(place).resolve())

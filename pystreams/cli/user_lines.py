"""Where in a user's own code an exception came from."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

#: Generated code and Python's frozen modules have names like ``<frozen importlib._bootstrap>``.
_NOT_THE_USERS = (str(Path(__file__).parents[1]), "<")

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))

_FRAMES_MAX = 5


def user_lines(error: BaseException | None) -> str:
    """The last frames of a traceback that are neither pystreams' nor the standard library's, with their source."""
    trace = error.__traceback__ if error is not None else None
    frames = [f for f in traceback.extract_tb(trace) if _is_the_users(f.filename)]
    return "\n".join(f"{f.filename}:{f.lineno}, in {f.name}\n    {f.line}" for f in frames[-_FRAMES_MAX:])


def _is_the_users(file: str) -> bool:
    if file.startswith(_NOT_THE_USERS):
        return False
    return file.startswith(_INSTALLED) or not file.startswith(_STANDARD_LIBRARY)

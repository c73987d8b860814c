"""Where in a user's own code an exception came from."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

#: Generated code and Python's frozen modules have names like ``<frozen importlib._bootstrap>``.
_NOT_THE_USERS = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<")

_FRAMES_MAX = 5


def user_lines(error: BaseException | None) -> str:
    """The last frames of a traceback that are neither pystreams' nor the import machinery's, with their source."""
    trace = error.__traceback__ if error is not None else None
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(_NOT_THE_USERS)]
    return "\n".join(f"{f.filename}:{f.lineno}, in {f.name}\n    {f.line}" for f in frames[-_FRAMES_MAX:])

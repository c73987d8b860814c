"""The lines of a user's own code that raised an exception."""

from __future__ import annotations

import re
import traceback

from pystreams.user_code import is_the_users

_FRAMES_MAX = 5

_FRAME = re.compile(r' {2}File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)\n {4}(?P<code>.+)')


def user_lines(error: BaseException | None) -> str:
    """The last frames of a traceback that are a program's own, with their source."""
    frames = [f for f in _frames(error) if is_the_users(f.filename)]
    return "\n".join(f"{f.filename}:{f.lineno}, in {f.name}\n    {f.line}" for f in frames[-_FRAMES_MAX:])


def _frames(error: BaseException | None) -> list[traceback.FrameSummary]:
    """An exception from another process has its traceback as text."""
    if error is None:
        return []
    if str(error).startswith("Traceback (most recent call last)"):
        found = _FRAME.finditer(str(error))
        return [traceback.FrameSummary(m["file"], int(m["line"]), m["name"], line=m["code"]) for m in found]
    return list(traceback.extract_tb(error.__traceback__))

"""Parses durations that users give."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from pystreams.errors import TopologyError

#: A timedelta, or milliseconds.
Duration: TypeAlias = timedelta | int


def milliseconds(duration: object, argument: str, *, least: int = 0) -> int:
    """``duration`` in whole milliseconds. Raises ``TopologyError`` if it is not a duration, or below ``least`` ms."""
    if isinstance(duration, timedelta):
        value = duration // timedelta(milliseconds=1)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        value = duration
    else:
        raise TopologyError(
            f"{argument}={duration!r} is not a duration", hint="give a timedelta, or milliseconds as an int"
        )
    if value < least:
        raise TopologyError(f"{argument} must be at least {least} ms, not {value}")
    return value


def check_milliseconds(owner: object, **least: int) -> None:
    """Raise ``TopologyError`` if an attribute of ``owner`` is not an int, or below its minimum in ``least``."""
    for name, least_ms in least.items():
        value = getattr(owner, name)
        if isinstance(value, timedelta):
            raise TopologyError(
                f"{name}={value!r} is not a number of milliseconds",
                hint="the class's methods accept timedeltas",
            )
        milliseconds(value, name, least=least_ms)

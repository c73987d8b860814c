"""The error for readers of an embedded log that does not exist, because opening it would create an empty log."""

from __future__ import annotations

from pathlib import Path

from pystreams.errors import BrokerUnavailableError


def check_embedded_log(path: Path, advice: str) -> None:
    """Raise ``BrokerUnavailableError`` if there is no embedded log at ``path``; ``advice`` is its hint."""
    if not path.exists():
        raise BrokerUnavailableError(
            f"There is no embedded log at {path}", where=f"looked for it from {Path.cwd()}", hint=advice
        )

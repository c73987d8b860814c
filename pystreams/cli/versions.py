"""``pystreams --version``: what a report of a defect begins with."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pystreams.distribution import __version__

#: What a run depends on most, each with what it is there for.
_PACKAGES: Final = (
    ("rocksdict", "stores"),
    ("confluent-kafka", "Kafka: records"),
    ("kafka-python", "Kafka: groups"),
    ("msgspec", "JSON and MessagePack"),
    ("pyspark", "backfills"),
    ("pyarrow", "archives and backfills"),
)


def version_lines() -> Iterator[str]:
    """The version of pystreams, alone on its line; then those of what it runs on, and where it is."""
    yield f"pystreams {__version__}"
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    for package, purpose in _PACKAGES:
        yield f"{package} {_version(package)} ({purpose})"
    yield f"installed in {Path(__file__).parents[1]}"


def _version(package: str) -> str:
    """As its distribution says: a package that is not imported costs no time."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

"""``pystreams --version``: the versions that a bug report needs."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pystreams.distribution import __version__

#: The most important dependencies, each with its purpose.
_PACKAGES: Final = (
    ("rocksdict", "stores"),
    ("confluent-kafka", "Kafka: records"),
    ("kafka-python", "Kafka: groups"),
    ("msgspec", "JSON and MessagePack"),
    ("pyspark", "backfills"),
    ("pyarrow", "archives and backfills"),
)


def version_lines() -> Iterator[str]:
    """The version of pystreams, alone on its line; then the versions of its dependencies, and where it is installed."""
    yield f"pystreams {__version__}"
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    for package, purpose in _PACKAGES:
        yield f"{package} {_version(package)} ({purpose})"
    yield f"installed in {Path(__file__).parents[1]}"


def _version(package: str) -> str:
    """The version in the distribution's metadata, which does not need a slow import of the package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

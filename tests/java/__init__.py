"""How tests start Java: with options for processes that live for a test or some, and with archives of the classes that
Spark and Kafka load (JEP 350), which halve the CPU time of their start. ``python -m tests.java`` makes the archives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_ARCHIVES: Final = Path(__file__).resolve().parents[2] / ".pystreams" / "java"
SPARK: Final = _ARCHIVES / "spark.jsa"
KAFKA: Final = _ARCHIVES / "kafka.jsa"

#: Compiling their code well costs more than it gives back.
QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def quick_maven() -> None:
    """Have Maven start quickly, whoever starts it from here on; options of a user's own stay."""
    os.environ.setdefault("MAVEN_OPTS", " ".join(QUICK))


def with_archive(archive: Path) -> tuple[str, ...]:
    """The options with which Java uses ``archive``. If it is missing or does not fit, Java starts without it, and must
    not say so: its words would stand among those that a command prints."""
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable")

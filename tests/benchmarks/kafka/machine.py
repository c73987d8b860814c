"""What a bench ran on: processor, memory, versions."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import confluent_kafka

from tests.kafka.server import VERSION as KAFKA_VERSION

_PACKAGES = ("confluent-kafka", "kafka-python", "msgspec", "rocksdict")


def facts() -> dict[str, str]:
    """Name -> what it is, for people."""
    kib = int(_first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)") or 0)
    found = {
        "processor": _first(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{kib / (1 << 20):.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
        "Apache Kafka and Kafka Streams": KAFKA_VERSION,
    }
    found |= {name: version(name) for name in _PACKAGES}
    if shutil.which("java") is not None:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
        found["Java"] = told.splitlines()[1] if len(told.splitlines()) > 1 else told.strip()
    return found


def _first(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text()) if path.exists() else None
    return "" if match is None else match[1].strip()

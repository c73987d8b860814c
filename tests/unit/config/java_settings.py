"""The settings of Kafka Streams 4.3.1 and its clients, as Java's own definitions list them.

Recorded by hand, with Kafka's jars and kafka-streams-4.3.1.jar on the class path:

    java -cp 'JARS/*:kafka-streams-4.3.1.jar' tests/unit/config/java/DumpSettings.java \
        > tests/unit/config/java/settings-4.3.1.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

JAVA: Final[dict[str, dict[str, dict[str, Any]]]] = json.loads(
    (Path(__file__).parent / "java" / "settings-4.3.1.json").read_text()
)
#: What Kafka Streams gives its clients instead of their own defaults. Source: StreamsConfig.PRODUCER_DEFAULT_OVERRIDES,
#: CONSUMER_DEFAULT_OVERRIDES and ADMIN_CLIENT_OVERRIDES.
OVERRIDES: Final[dict[str, dict[str, str]]] = {
    "consumer": {"max.poll.records": "1000", "auto.offset.reset": "earliest"},
    "producer": {"linger.ms": "100"},
    "admin": {"enable.metrics.push": "true"},
}


def java_default(client: str, name: str) -> str | None:
    """A client's default under Kafka Streams, as text; None if it has none."""
    if name in OVERRIDES[client]:
        return OVERRIDES[client][name]
    default = JAVA[client][name]["default"]
    return str(default).lower() if isinstance(default, bool) else None if default is None else str(default)

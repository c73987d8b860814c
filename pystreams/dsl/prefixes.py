"""The prefixes of the names of aggregations: those of Kafka Streams."""

from __future__ import annotations

from typing import Final

AGGREGATE: Final = "KSTREAM-AGGREGATE-"
REDUCE: Final = "KSTREAM-REDUCE-"

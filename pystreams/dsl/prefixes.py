"""How the names of steps begin that aggregate, with windows or without: those of Kafka Streams."""

from __future__ import annotations

from typing import Final

AGGREGATE: Final = "KSTREAM-AGGREGATE-"
REDUCE: Final = "KSTREAM-REDUCE-"

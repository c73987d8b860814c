"""What the bytes of serdes hold, told as data, and how what one wrote is read by another."""

from __future__ import annotations

from pystreams.serde.schemas.comparison import changes_keys, compare
from pystreams.serde.schemas.finding import Effect, Finding, Schema

__all__ = ["Effect", "Finding", "Schema", "changes_keys", "compare"]

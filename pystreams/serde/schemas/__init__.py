"""What the bytes of serdes hold, told as data (``finding``), and how what one wrote is read by another
(``comparison``, which no application loads that only runs)."""

from __future__ import annotations

from pystreams.serde.schemas.finding import Effect, Finding, Schema

__all__ = ["Effect", "Finding", "Schema"]

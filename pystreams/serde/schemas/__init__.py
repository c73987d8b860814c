"""Schemas of the bytes of serdes, as data, and their comparison: how well one serde reads the bytes of another.

Begin with ``comparison``, which a running application never imports. ``finding`` is a difference and its effect:
harmless, a loss, or unreadable data. ``wording`` describes schemas in words.

- ``python_types`` and ``pydantic_types`` derive the schema of a type; ``type_comparison`` compares two of them, with
  ``leaf_rules`` for single values.
- ``avro`` and ``protobuf`` do both for their formats.
"""

from __future__ import annotations

from pystreams.serde.schemas.finding import Effect, Finding, Schema

__all__ = ["Effect", "Finding", "Schema"]

"""Schemas: what the bytes of a serde hold, as data, and whether another serde can read what one wrote.

``comparison`` is the entrance; an application that only runs never loads it. ``finding`` is its answer: nothing, a
widening, a loss, or unreadable. ``wording`` puts schemas into words.

- ``python_types`` and ``pydantic_types`` derive the schema of a type; ``type_comparison`` compares two of them, with
  ``leaf_rules`` for single values.
- ``avro`` and ``protobuf`` do both for their formats.
"""

from __future__ import annotations

from pystreams.serde.schemas.finding import Effect, Finding, Schema

__all__ = ["Effect", "Finding", "Schema"]

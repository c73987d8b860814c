"""An application that workers import by name."""

from __future__ import annotations

from tests.backfill.programs import word_count

app = word_count()

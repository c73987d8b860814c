"""A table: its columns, its parts and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from pystreams.backfill.exchange.rows import Arrow


class Table(Protocol):
    """Rows in parts, which any process can read."""

    @property
    def schema(self) -> Arrow: ...

    def parts(self) -> Sequence[Any]:
        """The parts that exist now; picklable."""
        ...

    def read(self, part: Any, folder: str | None) -> Iterator[Arrow]:
        """The rows of a part in ``schema``. ``folder`` is for temporary files (None: the machine's)."""
        ...

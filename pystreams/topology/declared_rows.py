"""The stores of declared aggregates, in shapes (``fingerprint.shape``): the program's arguments name their fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pystreams.state.spec import StoreSpec

#: The name of the entry.
DECLARED: Final = "declared"


def entry_of_declared_rows(specs: Iterable[StoreSpec]) -> dict[str, list[str]]:
    """The entry in a part of a shape; empty if no store of the part has such rows."""
    names = [spec.name for spec in specs if spec.value_serde.declared_rows]
    return {DECLARED: names} if names else {}


def declared_stores(shape: Sequence[Mapping[str, Any]]) -> set[str]:
    """The stores of declared aggregates in a shape."""
    return {name for part in shape for name in part.get(DECLARED, ())}

"""The content of a snapshot's folder, and its manifest as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, Final

from pystreams.backfill.exchange.store_entries import StoreEntry
from pystreams.backfill.plan.manifest import MANIFEST_FILE
from pystreams.errors import StateError
from pystreams.state.sorted_files import TableFormat

FORMAT_VERSION: Final = 1
BESIDE_DIRECTORY: Final = "beside"

#: Before a version's key and value: whether it has a value, its timestamp, the length of its key.
_VERSION: Final = Struct(">?qi")


@dataclass(frozen=True, slots=True)
class StoredAs:
    """The place of a store's entries: in the task's database, or outside of it."""

    name: str
    slice: int
    subtopology: int
    format: TableFormat
    persistent: bool

    @property
    def versioned(self) -> bool:
        """Its versions are kept beside the database, too, by their number in the order of time."""
        return self.format.kind == "versioned"


def content_of(folder: Path) -> dict[str, Any]:
    """The manifest of a snapshot. Raises ``StateError`` if there is none, or one of another format."""
    path = folder / MANIFEST_FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = content["format"]
        if version == FORMAT_VERSION and content.keys() >= {"backfill", "stores", "outcomes"}:
            return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            "the folder holds no snapshot, or one that was not finished",
            where=str(path),
            why=f"{type(error).__name__}: {error}",
            hint="name the folder of a snapshot, or create it again",
        ) from error
    raise StateError(
        f"the snapshot has format {version}, which this version of pystreams does not read",
        where=str(path),
        hint="use the version that wrote it, or create the snapshot again",
    )


def pack_version(entry: StoreEntry) -> bytes:
    """A version of a versioned store as it is kept beside the database."""
    key, value, timestamp = entry
    return _VERSION.pack(value is not None, timestamp, len(key)) + key + (value or b"")


def unpack_version(packed: bytes) -> StoreEntry:
    """The key, value and timestamp of a packed version."""
    has_value, timestamp, length = _VERSION.unpack_from(packed)
    value_from = _VERSION.size + length
    return packed[_VERSION.size : value_from], packed[value_from:] if has_value else None, timestamp

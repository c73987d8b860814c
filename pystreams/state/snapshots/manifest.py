"""The manifest of a snapshot: its content, its offsets, and the digests by which it is verified."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId
from pystreams.state.spec import StoreSpec

#: Manifests of other versions are ignored.
FORMAT_VERSION: Final = 1
FILES_FOLDER: Final = "files"

_NAME: Final = re.compile(r"snapshot-(\d{20})-(\d{13})-(\w+)\.json")


class StoreContent(msgspec.Struct, frozen=True):
    """The content of a store: the records of ``topic`` before ``offset``. ``topic_id`` is None if the log has no ids of
    topics; ``schema`` is the result of ``schema_of``."""

    topic: str
    topic_id: str | None
    offset: int
    schema: Mapping[str, Any]


class StoredFile(msgspec.Struct, frozen=True):
    """The size of a file, and its digest (SHA-256, hexadecimal), which is its name in the folder."""

    size_bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    """``origin`` identifies the log, and the last hand-over before the snapshot; ``beginning`` identifies the time
    since the application was created or reset, None if it is not known. ``owner`` is the client that took the snapshot,
    at ``taken_ms`` (wall clock). ``files`` are those of the database, by name."""

    application_id: str
    task: str
    owner: str
    taken_ms: int
    origin: str
    beginning: str | None
    stores: Mapping[str, StoreContent]
    files: Mapping[str, StoredFile]

    @property
    def offsets(self) -> int:
        """The sum of the stores' offsets: of two snapshots of a task, the one with the higher sum is the later one."""
        return sum(store.offset for store in self.stores.values())

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())

    @property
    def name(self) -> ManifestName:
        return ManifestName(self.offsets, self.taken_ms, self.owner)

    def to_bytes(self) -> bytes:
        """The manifest as JSON, with its own digest."""
        content = msgspec.json.encode(self)
        digest = hashlib.sha256(content).hexdigest()
        return msgspec.json.encode(_Sealed(FORMAT_VERSION, digest, msgspec.Raw(content)))

    @classmethod
    def from_bytes(cls, sealed: bytes, where: str) -> Manifest:
        """Raises ``OtherFormatError`` for another format version, ``StateCorruptedError`` for other bytes that are not
        a complete manifest."""
        try:
            envelope = msgspec.json.decode(sealed, type=_Sealed)
            if envelope.format != FORMAT_VERSION:
                raise OtherFormatError(
                    f"a snapshot has format {envelope.format}",
                    where=where,
                    why=f"this version of pystreams reads format {FORMAT_VERSION}",
                )
            if hashlib.sha256(envelope.snapshot).hexdigest() == envelope.digest:
                return msgspec.json.decode(envelope.snapshot, type=cls)
            why = "its digest is another one"
        except msgspec.DecodeError as error:
            why = str(error)
        raise StateCorruptedError(
            "the manifest of a snapshot is damaged, or was not finished", where=where, why=why
        )


class OtherFormatError(StateCorruptedError):
    """Another version of pystreams wrote the snapshot."""


class _Sealed(msgspec.Struct, frozen=True):
    format: int
    digest: str
    snapshot: msgspec.Raw


class ManifestName(msgspec.Struct, frozen=True, order=True):
    """The file name of a manifest. The greatest has the highest offsets."""

    offsets: int
    taken_ms: int
    owner: str

    def __str__(self) -> str:
        return f"snapshot-{self.offsets:020d}-{self.taken_ms:013d}-{self.owner}.json"

    @classmethod
    def parse(cls, name: str) -> ManifestName | None:
        """The name of a manifest; None for the name of another file."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2]), found[3])


def task_folder(application_id: str, task_id: TaskId | str) -> str:
    """The sub-folder of the snapshots of a task."""
    return f"{application_id}/{task_id}"


def schema_of(spec: StoreSpec) -> dict[str, Any]:
    """The properties that decide how a store's entries lie in its table."""
    return {
        "kind": spec.kind,
        "window_size_ms": spec.window_size_ms,
        "retention_ms": spec.retention_ms,
        "retain_duplicates": spec.retain_duplicates,
        "by_time": spec.by_time,
        "history_ms": spec.history_ms,
        "segment_ms": spec.segment_ms,
    }

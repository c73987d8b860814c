"""Figures of a store for its metrics: of its cache, of the changes that it holds back, and of RocksDB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pystreams.state.spec import WINDOWED_KINDS, StoreSpec

#: The properties of RocksDB that Kafka Streams shows, by the names of its metrics. Source:
#: org.apache.kafka.streams.state.internals.metrics.RocksDBMetrics.
ROCKSDB_PROPERTIES: Final = (
    "num-entries-active-mem-table",
    "num-deletes-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-imm-mem-tables",
    "num-immutable-mem-table",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "mem-table-flush-pending",
    "num-running-flushes",
    "compaction-pending",
    "num-running-compactions",
    "estimate-pending-compaction-bytes",
    "total-sst-files-size",
    "live-sst-files-size",
    "num-live-versions",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "estimate-num-keys",
    "estimate-table-readers-mem",
    "background-errors",
)


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """``size_bytes`` is the weight of the cache. ``reads`` counts the reads of single entries (None: they are not
    counted), ``misses`` those of them that were not in the cache, ``writes`` the written entries."""

    size_bytes: int
    misses: int
    writes: int
    reads: int | None


@dataclass(frozen=True, slots=True)
class BufferFigures:
    """The number of changes that a buffer holds back, and their size as its limits count it."""

    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """``cache`` is None for a store without a cache, ``buffer`` is None unless the store is a buffer of held-back
    changes; ``rocksdb`` has the properties, and is empty for a store in memory."""

    spec: StoreSpec
    cache: CacheFigures | None
    buffer: BufferFigures | None
    rocksdb: Mapping[str, int]


def state_tag(spec: StoreSpec) -> str:
    """The tag under which Kafka Streams has the metrics of a store."""
    if spec.kind == "buffer":
        return "in_memory_suppression_state_id"
    medium = "rocksdb" if spec.persistent else "in_memory"
    kind = "window_" if spec.kind in WINDOWED_KINDS else "session_" if spec.kind == "session" else ""
    return f"{medium}_{kind}state_id"

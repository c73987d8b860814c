"""The memory that all RocksDB databases of a process share."""

from __future__ import annotations

import threading
from functools import cached_property

import rocksdict

DEFAULT_BLOCK_CACHE_BYTES = 64 * 1024 * 1024
DEFAULT_WRITE_BUFFER_BYTES = 64 * 1024 * 1024


class RocksResources:
    """One block cache for reads, and one budget for the write buffers, for all tasks.

    Create one per process. The write buffers have their own budget; when it is exceeded, RocksDB flushes the largest.
    """

    def __init__(
        self,
        block_cache_bytes: int = DEFAULT_BLOCK_CACHE_BYTES,
        write_buffer_bytes: int = DEFAULT_WRITE_BUFFER_BYTES,
    ) -> None:
        self.block_cache_bytes = block_cache_bytes
        self.write_buffer_bytes = write_buffer_bytes

    @cached_property
    def block_cache(self) -> rocksdict.Cache:
        return rocksdict.Cache(self.block_cache_bytes)

    @cached_property
    def write_buffers(self) -> rocksdict.WriteBufferManager:
        # No stalls, because a stalled write would hold the GIL: it is better to exceed the budget for a moment.
        return rocksdict.WriteBufferManager(self.write_buffer_bytes, False)

    def summary(self, cache_bytes: int, uncommitted_bytes: int) -> str:
        """The memory budget in one line, for the log at the start. Sizes are in bytes."""
        total = self.block_cache_bytes + self.write_buffer_bytes + cache_bytes + uncommitted_bytes
        parts = (
            ("record caches", cache_bytes),
            ("uncommitted writes", uncommitted_bytes),
            ("RocksDB block cache", self.block_cache_bytes),
            ("RocksDB write buffers", self.write_buffer_bytes),
        )
        listed = ", ".join(f"{name} {_mebibytes(size)}" for name, size in parts)
        return f"memory for state at most {_mebibytes(total)}: {listed}"


def _mebibytes(size: int) -> str:
    return f"{size / (1024 * 1024):.4g} MiB"


_shared_lock = threading.Lock()
_shared: list[RocksResources] = []


def shared_resources() -> RocksResources:
    """The process's resources with default sizes, created at the first call: for stores opened without a runtime."""
    with _shared_lock:
        if not _shared:
            _shared.append(RocksResources())
        return _shared[0]

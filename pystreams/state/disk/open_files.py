"""Raises the number of files that the process may have open. RocksDB keeps two or three open for each store of each
task."""

from __future__ import annotations

import resource
from typing import Final

#: Enough for any number of stores. The limit is not higher, because child processes inherit it, and some programs loop
#: over all possible file descriptors.
_ENOUGH: Final = 1 << 20


def allow_open_files() -> int:
    """Raise the limit of this process as far as the system permits it without privileges, as the JVM does. Returns the
    limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        # Some systems name a hard limit that they do not permit.
        return soft
    return wanted

"""How many files the process may have open: RocksDB keeps two or three open for each store of each task."""

from __future__ import annotations

import resource


def allow_open_files() -> int:
    """Raise the limit of this process as far as the system permits it without privileges, as the JVM does. Returns the
    limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        # Some systems name a hard limit that they do not permit.
        return soft
    return hard

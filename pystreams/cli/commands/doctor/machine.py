"""Checks of this machine: versions, open files, memory, the folder for state."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pystreams.cli.commands.doctor.finding import Finding, good, remark
from pystreams.distribution import __version__
from pystreams.errors import StateError
from pystreams.plural import counted

if TYPE_CHECKING:
    from pystreams.config import StreamsConfig
    from pystreams.topology.built import BuiltTopology

_MIB: Final = 1024 * 1024
_GIB: Final = 1024 * _MIB
#: RocksDB keeps every file open: tens of them for each task, with much state.
_FILES_FOR_TASK: Final = 50
_FILES_BESIDES: Final = 1_000
#: Python, libraries and the objects of the program need memory, too.
_STATE_SHARE_MAX: Final = 0.5
_FREE_BYTES_MIN: Final = _GIB
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_MOUNTS: Final = Path("/proc/mounts")
_REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "glusterfs"})


def versions() -> Iterator[Finding]:
    yield good("versions", f"pystreams {__version__}, Python {platform.python_version()}")


def open_files(built: BuiltTopology, tasks: int) -> Iterator[Finding]:
    """``tasks``: as many may come to this machine, if it is alone."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    stores = any(spec.persistent for spec in built.stores)
    wanted = _FILES_BESIDES + (_FILES_FOR_TASK * tasks if stores else 0)
    if limit == resource.RLIM_INFINITY or limit >= wanted:
        shown = "no limit" if limit == resource.RLIM_INFINITY else f"{limit:,}"
        yield good("open files", f"{shown}, and {counted(tasks, 'task')} at most need about {wanted:,}")
        return
    yield remark(
        "open files",
        f"the limit is {limit:,}, and {counted(tasks, 'task')} with stores may need {wanted:,}",
        "raise it: ulimit -Hn, LimitNOFILE= in a unit of systemd, or the container's limit",
    )


def memory(config: StreamsConfig) -> Iterator[Finding]:
    """The budget for state, beside the memory that there is."""
    there = memory_bytes()
    budget = (
        config.rocksdb_block_cache_bytes
        + config.rocksdb_write_buffer_bytes
        + config.statestore_cache_max_bytes
        + config.statestore_uncommitted_max_bytes
    )
    text = f"each process takes up to {budget / _MIB:,.0f} MiB for state, of {there / _GIB:,.1f} GiB"
    if budget <= _STATE_SHARE_MAX * there:
        yield good("memory", text)
    else:
        yield remark(
            "memory",
            text,
            "lower rocksdb_block_cache_bytes, rocksdb_write_buffer_bytes, statestore_cache_max_bytes or "
            "statestore_uncommitted_max_bytes",
        )


def memory_bytes() -> int:
    """The memory that this process may use: the limit of its container, or the memory of the machine."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP_LIMIT.read_text().strip()
    except OSError:
        return machine
    return min(int(limit), machine) if limit.isdecimal() else machine


def state_folder(config: StreamsConfig) -> Iterator[Finding]:
    """Raises ``StateError`` if nothing can be written there."""
    from pystreams.ids import TaskId
    from pystreams.state.disk.directory import StateDirectory

    folder = Path(config.state_dir)
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise StateError(
            f"state cannot be written to {folder}",
            why=f"this user may not write to {there}" if there.is_dir() else f"{there} is a file",
            hint="choose another folder: --state-dir FOLDER",
        )
    tasks: list[TaskId] = sorted(StateDirectory(folder, config.application_id).local_tasks())
    has = f"state of {counted(len(tasks), 'task')}" if tasks else "no state yet"
    free = shutil.disk_usage(there).free
    text = f"{folder}: {has}, {free / _GIB:,.1f} GiB free"
    kind = file_system(there)
    if kind == "tmpfs":
        yield remark(
            "state", f"{text}, in memory (tmpfs)", "after a restart of the machine all state is restored"
        )
    elif kind in _REMOTE:
        yield remark(
            "state",
            f"{text}, on another machine ({kind})",
            "use a local disk: RocksDB waits for it all the time",
        )
    elif free < _FREE_BYTES_MIN:
        yield remark(
            "state", text, "a full disk ends the application: free some space, or choose --state-dir"
        )
    else:
        yield good("state", text)


def file_system(path: Path) -> str:
    """The type of the file system on which a path is; empty where the system does not say."""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    mounts = [(Path(fields[1]), fields[2]) for fields in map(str.split, lines)]
    above = [(len(point.parts), kind) for point, kind in mounts if path.resolve().is_relative_to(point)]
    return max(above, default=(0, ""))[1]

"""What Linux says about processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def fields_of(task: Path) -> list[str]:
    """The state of a process or thread (its folder in ``/proc``), its parent, and what follows. Its name, which comes
    before that, may hold anything. Raises ``OSError`` if it is gone."""
    return (task / "stat").read_text().rpartition(")")[2].split()


def children(pid: int) -> list[int]:
    """The processes that a process has started, and that were not reaped."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(fields_of(each)[1]) == pid:
                found.append(int(each.name))
    return found


def command_line(pid: int) -> list[str]:
    """The arguments of a process; none if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    return []


def process_name(pid: int) -> str:
    """The name of a process, which it may change; empty if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def alive(pid: int) -> bool:
    """True for a process that runs or is stopped; not for one that waits to be reaped."""
    with suppress(OSError):
        return fields_of(Path(f"/proc/{pid}"))[0] != "Z"
    return False

"""What Linux says about processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

#: A flag of Unix sockets that listen: __SO_ACCEPTCON.
_ACCEPTS = 0x10000


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


def listening(pid: int) -> set[str]:
    """The sockets of a process at which others can reach it: kind, then address and port in hexadecimal digits, as
    Linux writes them, or the path of a Unix socket."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for fields in _sockets(pid, kind):
            if fields[3] == state and fields[9] in own:
                found.add(f"{kind} {fields[1]}")
    for fields in _sockets(pid, "unix"):
        if int(fields[3], 16) & _ACCEPTS and fields[6] in own:
            found.add(" ".join(["unix", *fields[7:]]))
    return found


def _sockets(pid: int, kind: str) -> list[list[str]]:
    lines = Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()
    return [line.split() for line in lines[1:]]

"""What a shell of tests runs for ``pystreams`` and ``python``: asks a nursery (``forked``) to fork the program with its
own streams, hands signals on to it, and ends as it does. What a fork cannot do is started instead.

It is the text of both commands, so it imports only what is part of Python's binary: that takes ten milliseconds.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
from typing import Any

#: These modules run with ``python -m`` in a process that has imported pystreams as they run in another; and so do those
#: of the folder.
MODULES = ("pystreams", "pytest")
HANDED_ON = (
    _signal.SIGHUP,
    _signal.SIGINT,
    _signal.SIGQUIT,
    _signal.SIGTERM,
    _signal.SIGUSR1,
    _signal.SIGUSR2,
)
#: Python itself ignores these.
IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)


def what_to_run(real: str, arguments: list[str]) -> dict[str, Any] | None:
    """The part of ``nursery.Program`` that says it; None: it has to be started."""
    if real.endswith("/pystreams"):
        return {"script": real, "arguments": arguments}
    first, second = [*arguments, "", ""][:2]
    if first == "-m" and (second in MODULES or second.partition(".")[0] in posix.listdir()):
        return {"module": second, "arguments": arguments[2:]}
    if first == "-c" and second:
        return {"code": second, "arguments": arguments[2:]}
    if first.endswith(".py") and not first.startswith("-"):
        return {"script": first, "arguments": arguments[1:]}
    return None


def main(
    folder: str,
    sockets: list[int],
    read_at_the_start: tuple[str, ...],
    taken_over: tuple[str, ...],
    read: dict[str, str],
) -> None:
    """``forked`` gives the folder of the real commands, the sockets of nurseries, how names of variables begin that
    Python reads only when it starts, those that a fork takes over, and the nurseries' values of the others."""
    real = f"{folder}/{sys.argv[0].rpartition('/')[2]}"
    environment = {decoded(key): decoded(value) for key, value in posix.environ.items()}
    what = what_to_run(real, sys.argv[1:])
    found = {
        key: value
        for key, value in environment.items()
        if key.startswith(read_at_the_start) and key not in taken_over
    }
    if what is not None and found == read:
        # Programs that are started one after the other do not have the same seed of their hashes.
        run(what, environment, sockets[posix.getpid() % len(sockets)])
    posix.execv(real, [real, *sys.argv[1:]])


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def run(what: dict[str, Any], environment: dict[str, str], descriptor: int) -> None:
    """Ends this process as the program ends. Returns if the nursery does not answer."""
    mask = posix.umask(0)
    posix.umask(mask)
    numbers = sorted({*map(int, _signal.valid_signals())} - {*IGNORED_BY_PYTHON})
    ignored = [number for number in numbers if _signal.getsignal(number) == _signal.SIG_IGN]
    program = {
        **what,
        "folder": posix.getcwd(),
        "environment": environment,
        "numbers": [0, 1, 2],
        "mask": mask,
        "new_session": False,
        "blocked": [],
        "ignored": ignored,
        # The nursery looks for it at the end.
        "bound": True,
    }
    mine, its = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    nursery = _socket.socket(fileno=descriptor)
    sent = b"".join(number.to_bytes(4, sys.byteorder) for number in (its.fileno(), 0, 1, 2))
    try:
        nursery.sendmsg([ascii(program).encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, sent)])
    except OSError:
        return
    its.close()
    answer = mine.recv(1 << 16)
    if b'"pid"' not in answer:
        return
    pid = number_in(answer)
    for number in {*HANDED_ON} - {*ignored}:
        _signal.signal(number, lambda number, _: posix.killpg(pid, number))
    end_with(number_in(mine.recv(1 << 16)))


def number_in(answer: bytes) -> int:
    return int(answer.partition(b":")[2].strip(b" }"))


def end_with(status: int) -> None:
    """As ``waitpid`` gives it."""
    if posix.WIFSIGNALED(status):
        number = posix.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
    posix._exit(posix.WEXITSTATUS(status))

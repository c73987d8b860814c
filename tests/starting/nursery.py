"""Forks programs on request; they begin with pystreams imported. There is no thread but one, so that forking is safe.

``forked`` runs this text under a name that is no file: what is below ``tests`` is a user's program to pystreams.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

IMPORTED = (
    "confluent_kafka.admin",
    "pystreams.broker.embedded.broker",
    "pystreams.broker.kafka.broker",
    "pystreams.cli.commands.run",
    "pystreams.cli.commands.topics",
    "pystreams.cli.commands.workers.worker_program",
    "pystreams.cli.main",
    "pystreams.state.disk.rocksdb",
    "rich.console",
    "rocksdict",
    "sqlite3",
    "typer._adapters",
)

#: Descriptors from here on are in nobody's way while those of a program get their numbers.
FAR = 500


class Program(NamedTuple):
    """A module to run, and what its process takes from the one that starts it."""

    module: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    #: Of the descriptors that are sent with it.
    numbers: list[int]
    #: For the permissions of new files.
    mask: int
    new_session: bool
    blocked: list[int]
    ignored: list[int]


def main() -> None:
    installed = sys.path[1:]
    control = socket.socket(fileno=int(sys.argv[1]))
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    program, descriptors, caller = serve(control)
    take_descriptors(program, descriptors)
    become(program, installed)
    with caller:
        caller.send(json.dumps({"pid": os.getpid()}).encode())
    runpy.run_module(program.module, run_name="__main__", alter_sys=True)


def serve(control: socket.socket) -> tuple[Program, list[int], socket.socket]:
    """Fork until nobody holds the other end of ``control``. Returns in each forked process: with its program, its
    descriptors, and the socket of its caller, who first gets its pid over it, and its status when it has ended."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    callers: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting:
        for read in (control, woken):
            waiting.register(read, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in waiting.select()}
            if woken in ready:
                woken.recv(1 << 12)
                report_the_ended(callers)
            if control not in ready:
                continue
            text, (number, *descriptors) = next_request(control)
            caller = socket.socket(fileno=number)
            pid = os.fork()
            if not pid:
                break
            callers[pid] = caller
            for descriptor in descriptors:
                os.close(descriptor)
    signal.set_wakeup_fd(-1)
    for opened in (control, woken, wake, *callers.values()):
        opened.close()
    return Program(**json.loads(text)), descriptors, caller


def next_request(control: socket.socket) -> tuple[bytes, list[int]]:
    text, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 100)
    if not text:
        # Nobody is left to ask. Programs that still run go on.
        os._exit(0)
    return text, descriptors


def report_the_ended(callers: dict[int, socket.socket]) -> None:
    while callers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            break
        with callers.pop(pid) as caller, contextlib.suppress(OSError):
            caller.send(json.dumps({"status": status}).encode())


def take_descriptors(program: Program, descriptors: list[int]) -> None:
    """Give each the number that it has in the program, and close all others but the caller's."""
    far = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FAR) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(far, program.numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def become(program: Program, installed: list[str]) -> None:
    """Be as if the program had been started, and Python with it."""
    if program.new_session:
        os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        signal.signal(number, signal.SIG_IGN if number in program.ignored else signal.SIG_DFL)
    if signal.SIGINT not in program.ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, program.blocked)
    os.umask(program.mask)
    os.chdir(program.folder)
    # Python sets it itself where no locale is set (PEP 538).
    coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update({**coerced, **program.environment})
    time.tzset()
    named = [entry for entry in program.environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [program.folder, *named, *installed]
    importlib.invalidate_caches()
    sys.argv[:] = ["-m", *program.arguments]
    sys.orig_argv[:] = [sys.executable, "-m", program.module, *program.arguments]
    open_streams(unbuffered=bool(program.environment.get("PYTHONUNBUFFERED")))


def open_streams(*, unbuffered: bool) -> None:
    """Standard input, output and error, as Python opens them."""

    def opened(number: int, like: Any, *, lines: bool) -> Any:
        mode, buffer = ("rb", -1) if number == 0 else ("wb", 0 if unbuffered else -1)
        binary = open(number, mode, buffer, closefd=False)  # noqa: SIM115 - until the program ends
        lines = binary.isatty() or (lines and not unbuffered)
        return io.TextIOWrapper(
            binary, like.encoding, like.errors, line_buffering=lines, write_through=unbuffered
        )

    sys.stdin = sys.__stdin__ = opened(0, sys.stdin, lines=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = opened(1, sys.stdout, lines=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = opened(2, sys.stderr, lines=True)  # type: ignore[misc]


main()

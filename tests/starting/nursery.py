"""Forks programs on request; they begin with pystreams imported. It has one thread, so that forking is safe.

pystreams takes files below ``tests`` for the user's program. So that it does not take this one, ``forked`` compiles it
as ``<nursery>``.
"""

from __future__ import annotations

import ast
import contextlib
import faulthandler
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
import traceback
import types
from pathlib import Path
from typing import Any, NamedTuple

IMPORTED = (
    "confluent_kafka.admin",
    "pystreams.broker.embedded.broker",
    "pystreams.broker.kafka.broker",
    "pystreams.cli.commands.run",
    "pystreams.cli.commands.topics",
    "pystreams.cli.commands.workers.worker_program",
    "pystreams.cli.main",
    "pystreams.app",
    "pystreams.dsl.builder",
    "pystreams.state.disk.rocksdb",
    "rich.console",
    "rocksdict",
    "sqlite3",
    "typer._adapters",
)

#: Received descriptors are moved to this number or higher first, so that none has a number that another one needs.
FAR = 200


class Program(NamedTuple):
    """A module, a file or a text to run, and what its process takes from the one that starts it."""

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
    module: str = ""
    script: str = ""
    code: str = ""
    #: It has a process group of its own, which is killed if its caller is gone.
    bound: bool = False


class Forked:
    """The processes that were forked. A process stays a zombie until its caller knows its status and has closed the
    socket, as one that the caller has started: until then nobody else gets its pid."""

    def __init__(self, waiting: selectors.BaseSelector) -> None:
        self._waiting = waiting
        self._pids: dict[socket.socket, int] = {}
        self._ended: set[int] = set()
        #: Nobody waits for these any more.
        self._forgotten: set[int] = set()
        #: These do not outlive their callers.
        self._bound: set[int] = set()

    def add(self, caller: socket.socket, pid: int, *, bound: bool) -> None:
        self._pids[caller] = pid
        if bound:
            self._bound.add(pid)
        self._waiting.register(caller, selectors.EVENT_READ)

    def tell_the_ended(self) -> None:
        for caller, pid in self._pids.items():
            if pid not in self._ended and (status := status_of(pid)) is not None:
                self._ended.add(pid)
                with contextlib.suppress(OSError):
                    caller.send(json.dumps({"status": status}).encode())
        for pid in [pid for pid in self._forgotten if status_of(pid) is not None]:
            self._forgotten.remove(pid)
            os.waitpid(pid, 0)
            # From now on another process may get the pid.
            self._ended.discard(pid)

    def forget(self, callers: set[Any]) -> None:
        """These have closed their sockets."""
        for caller in callers & self._pids.keys():
            self._waiting.unregister(caller)
            caller.close()
            pid = self._pids.pop(caller)
            self._forgotten.add(pid)
            if pid in self._bound:
                self._bound.discard(pid)
                if pid not in self._ended:
                    # It may not have its group yet.
                    for kill in (os.killpg, os.kill):
                        with contextlib.suppress(ProcessLookupError):
                            kill(pid, signal.SIGKILL)
        self.tell_the_ended()

    def close_sockets(self) -> None:
        for caller in self._pids:
            caller.close()


def status_of(pid: int) -> int | None:
    """As ``waitpid`` gives it; None while the process is alive. It stays a zombie."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status


def main() -> None:
    # The tests go on after a Ctrl-C that is meant for a program, and without their terminal.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    installed = sys.path[1:]
    control = socket.socket(fileno=int(sys.argv[1]))
    for module in IMPORTED:
        # What is not there in another version only takes longer later.
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    threads = [*Path("/proc/self/task").iterdir()]
    assert len(threads) == 1, "an import has started a thread, so forking is not safe"
    # No program copies the memory of all these modules by looking for garbage in them.
    gc.collect()
    gc.freeze()
    text, descriptors, caller = serve(control)
    program = Program(**ast.literal_eval(text.decode()))
    far = max(FAR, *program.numbers) + 1
    report = socket.socket(fileno=fcntl.fcntl(caller.fileno(), fcntl.F_DUPFD_CLOEXEC, far))
    caller.close()
    with report:
        try:
            take_descriptors(program.numbers, descriptors, far)
            become(program, installed)
        except BaseException:  # noqa: BLE001 - the caller raises it
            report.send(json.dumps({"error": traceback.format_exc()}).encode())
            os._exit(1)
        report.send(json.dumps({"pid": os.getpid()}).encode())
    run(program)


def serve(control: socket.socket) -> tuple[bytes, list[int], socket.socket]:
    """Fork until nobody holds the other end of ``control``. Returns in each forked process: with its program, its
    descriptors, and the socket of its caller, who first gets its pid over it, and its status when it has ended."""
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as waiting:
        forked = Forked(waiting)
        for read in (control, woken):
            waiting.register(read, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in waiting.select()}
            if woken in ready:
                woken.recv(1 << 12)
                forked.tell_the_ended()
            forked.forget(ready - {control, woken})
            if control not in ready:
                continue
            text, (number, *descriptors) = next_request(control)
            caller = socket.socket(fileno=number)
            pid = os.fork()
            if not pid:
                break
            forked.add(caller, pid, bound=text.endswith(b"'bound': True}"))
            for descriptor in descriptors:
                os.close(descriptor)
    signal.set_wakeup_fd(-1)
    for opened in (control, woken, wake):
        opened.close()
    forked.close_sockets()
    return text, descriptors, caller


def next_request(control: socket.socket) -> tuple[bytes, list[int]]:
    text, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 100)
    if not text:
        # Nobody is left to ask. Programs that still run go on.
        os._exit(0)
    return text, descriptors


def take_descriptors(numbers: list[int], descriptors: list[int], far: int) -> None:
    """Give each descriptor the number that it has in the program."""
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, far) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(moved, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def become(program: Program, installed: list[str]) -> None:
    """Be as if the program had been started, and Python with it."""
    if program.bound:
        os.setpgid(0, 0)
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
    entries = program.environment.get("PYTHONPATH", "").split(os.pathsep)
    named = dict.fromkeys(str(Path(entry).absolute()) for entry in entries if entry)
    beside = os.path.dirname(os.path.realpath(program.script)) if program.script else program.folder  # noqa: PTH120
    first = "" if program.code else beside
    sys.path[:] = [first, *named, *(entry for entry in installed if entry not in named)]
    importlib.invalidate_caches()
    typed = [program.script] if program.script else ["-c" if program.code else "-m"]
    sys.argv[:] = [*typed, *program.arguments]
    told = [] if program.script else [program.code or program.module]
    sys.orig_argv[:] = [sys.executable, *typed, *told, *program.arguments]
    open_streams(unbuffered=bool(program.environment.get("PYTHONUNBUFFERED")))
    if program.environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


def run(program: Program) -> None:
    """As Python does it."""
    if program.module:
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    code, name = program.code, "<string>"
    if program.script:
        name = main.__file__ = str(Path(program.script).absolute())
        code = Path(name).read_text(encoding="utf-8")
    exec(compile(code, name, "exec", dont_inherit=True), vars(main))


def open_streams(*, unbuffered: bool) -> None:
    """Standard input, output and error, as Python opens them."""

    def opened(number: int, like: Any, *, lines: bool) -> Any:
        mode, buffer = ("rb", -1) if number == 0 else ("wb", 0 if unbuffered else -1)
        binary: Any = open(number, mode, buffer, closefd=False)  # noqa: SIM115 - until the program ends
        getattr(binary, "raw", binary).name = like.name
        return io.TextIOWrapper(
            binary,
            like.encoding,
            like.errors,
            newline="\n",
            line_buffering=binary.isatty() or (lines and not unbuffered),
            write_through=unbuffered,
        )

    sys.stdin = sys.__stdin__ = opened(0, sys.stdin, lines=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = opened(1, sys.stdout, lines=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = opened(2, sys.stderr, lines=True)  # type: ignore[misc]


main()

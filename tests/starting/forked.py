"""``subprocess.Popen`` for tests: if it is to run a module of the project with ``python -m``, this forks it from a
process that has imported pystreams. Imports take half a second, and tests run hundreds of programs.

A forked program does what a started one does, except that it looks for no garbage in what was imported. What a fork
cannot do, or could do differently, is started: another interpreter, options of Python, variables that Python reads when
it starts, functions that run before the program.
``PYSTREAMS_TESTS_START=exec`` has everything started.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_NURSERY: Final = Path(__file__).with_name("nursery.py")
_TYPED: Final = Path(__file__).with_name("typed.py")
_MODULES: Final = ("pystreams", "tests.", "apps.")
#: Variables that Python or libraries read once, when they are loaded.
_READ_AT_THE_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OPENSSL_", "SSL_")
#: These are taken over by a forked program.
_TAKEN_OVER: Final = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER")
#: A program with one of these arguments is started, and so is one without the usual values of the next ones.
_ONLY_STARTED: Final = ("preexec_fn", "executable", "startupinfo", "shell", "gid", "gids", "uid")
_USUAL: Final = {"close_fds": True, "restore_signals": True, "umask": -1}
#: Python itself ignores SIGPIPE and SIGXFSZ.
_SIGNALS: Final = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
#: What nurseries start with: tests change it for what they start.
_ENVIRONMENT: Final = dict(os.environ)

_started = subprocess.Popen
_signature = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class Nursery:
    """A process that forks. It is started when it is to fork the first program, and when it is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, program: Mapping[str, Any], descriptors: list[int]) -> tuple[int, socket.socket]:
        """The pid of a process that has become the program, and the socket over which its status comes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as failed:
            failed.callback(ours.close)
            with theirs:
                text, sent = ascii(program).encode(), [theirs.fileno(), *descriptors]
                try:
                    socket.send_fds(self._running(), [text], sent)
                except OSError:
                    self.stop()
                    socket.send_fds(self._running(), [text], sent)
            answer = json.loads(ours.recv(1 << 16) or "{}")
            if "pid" not in answer:
                raise RuntimeError(
                    f"{program['module']} could not be forked: {answer.get('error', 'the nursery is gone')}"
                )
            failed.pop_all()
        return answer["pid"], ours

    def asked_over(self) -> socket.socket:
        """The socket that takes requests."""
        return self._running()

    def _running(self) -> socket.socket:
        if self._control is None:
            self._process, self._control = _start()
            atexit.register(self.stop)
        return self._control

    def stop(self) -> None:
        """End it. Its programs go on."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.wait(60)
            atexit.unregister(self.stop)
        self._control = None


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in _ENVIRONMENT.items() if name not in _TAKEN_OVER}
    # The nursery's module must not be called __main__: that is the program's.
    text = (
        "__name__ = 'nursery'; exec(compile(open(__import__('sys').argv.pop(1)).read(), '<nursery>', 'exec'))"
    )
    with theirs:
        process = _started(
            [sys.executable, "-c", text, str(_NURSERY), str(theirs.fileno())],
            env=environment,
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    return process, ours


_mutex: Final = threading.Lock()
#: Two, so that programs that work together differ in the seed of their hashes, as started ones do.
_both: Final = (Nursery(), Nursery())
_nurseries: Final = cycle(_both)


class Popen(subprocess.Popen[Any]):
    """A program, forked or started."""

    _status: socket.socket | None = None

    def _execute_child(self, *given: Any, **named: Any) -> None:
        arguments = _signature.bind(self, *given, **named).arguments
        environment = dict(os.environ if arguments["env"] is None else arguments["env"])
        if not _can_be_forked(arguments, environment):
            super()._execute_child(*given, **named)  # type: ignore[misc]
            return
        descriptors = {0: arguments["p2cread"], 1: arguments["c2pwrite"], 2: arguments["errwrite"]}
        descriptors = {number: number if fd == -1 else fd for number, fd in descriptors.items()}
        descriptors |= {descriptor: descriptor for descriptor in arguments["pass_fds"]}
        program = _program(arguments, environment, [*descriptors])
        with _mutex:
            self.pid, self._status = next(_nurseries).fork(program, [*descriptors.values()])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(arguments[pipe] for pipe in pipes))  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        try:
            status = self._status.recv(100, socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)
        except BlockingIOError:
            return 0, 0
        self._status.close()
        if status:
            return self.pid, json.loads(status)["status"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.returncode = -signal.SIGKILL
        raise ChildProcessError("the process that forks programs is gone, so nobody knows how this one ended")

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(*given, **named)  # type: ignore[misc, no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[has-type]
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[has-type]
        return self.returncode


def make_commands(folder: Path, environment: Mapping[str, str]) -> list[int]:
    """Write ``pystreams`` and ``python``, which fork what a shell with this environment runs. Returns the descriptors
    that the shell has to inherit; none, and nothing is written, if its programs have to be started."""
    read = _read_at_the_start(environment)
    # Whether modules are compiled makes no difference to a program.
    started_with = {name: text for name, text in _ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
    forking = sys.platform == "linux" and os.environ.get("PYSTREAMS_TESTS_START") != "exec"
    if not forking or read != _read_at_the_start(started_with):
        return []
    with _mutex:
        sockets = [nursery.asked_over().fileno() for nursery in _both]
    given = (str(Path(sys.executable).parent), sockets, _READ_AT_THE_START, _TAKEN_OVER, read)
    text = f"{_TYPED.read_text(encoding='utf-8')}\n\nmain{given!r}\n"
    for name in ("pystreams", "python"):
        command = folder / name
        command.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
        command.chmod(0o755)
    return sockets


def _can_be_forked(arguments: Mapping[str, Any], environment: Mapping[Any, Any]) -> bool:
    command = arguments["args"]
    return (
        isinstance(command, list)
        and len(command) > 2
        and command[:2] == [sys.executable, "-m"]
        and all(isinstance(text, str) for text in (*command, *environment, *environment.values()))
        and command[2].startswith(_MODULES)
        and all(arguments.get(name) in (None, False) for name in _ONLY_STARTED)
        and all(arguments.get(name, usual) == usual for name, usual in _USUAL.items())
        and arguments.get("process_group") in (None, -1)
        and _read_at_the_start(environment) == _read_at_the_start(_ENVIRONMENT)
    )


def _read_at_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_THE_START) and name not in _TAKEN_OVER
    }


def _program(arguments: Mapping[str, Any], environment: dict[str, str], numbers: list[int]) -> dict[str, Any]:
    folder = Path(arguments["cwd"] or "").absolute()
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    command = arguments["args"]
    return {
        "module": command[2],
        "arguments": command[3:],
        "folder": str(folder),
        "environment": environment,
        "numbers": numbers,
        "mask": _umask(),
        "new_session": bool(arguments["start_new_session"]),
        "blocked": [*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))],
        "ignored": [int(number) for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
    }


def _umask() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)

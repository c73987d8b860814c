"""``subprocess.Popen`` for tests: a module of the project that it is to run by ``python -m`` is forked from a process
that has imported pystreams. A program does what it would do if it had been started; only its imports, which take each
of hundreds of programs half a second, are done once for all.

What a fork cannot do, or could do differently, is started as always: another interpreter, options of Python, variables
that Python reads when it starts, functions that run before the program. ``PYSTREAMS_TESTS_START=exec`` has everything
started so.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_NURSERY: Final = Path(__file__).with_name("nursery.py")
_MODULES: Final = ("pystreams", "tests.", "apps.")
#: Variables that Python or libraries read once, when they are loaded.
_READ_AT_THE_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OPENSSL_", "SSL_")
#: These are taken over by a forked program.
_TAKEN_OVER: Final = ("PYTHONPATH", "PYTHONUNBUFFERED")
#: The arguments of a process that only a started one has.
_ONLY_STARTED: Final = ("preexec_fn", "executable", "startupinfo", "shell", "gid", "gids", "uid")
#: Python itself ignores SIGPIPE and SIGXFSZ.
_SIGNALS: Final = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}

#: What the nursery starts with: tests change it for what they start.
_ENVIRONMENT: Final = dict(os.environ)

_started = subprocess.Popen
_signature = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class Nursery:
    """The process that forks, for one process that runs tests. It is started when the first program is."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether Python would start with it as the nursery did."""
        return _read_at_the_start(environment) == _read_at_the_start(_ENVIRONMENT)

    def fork(self, program: Mapping[str, Any], descriptors: list[int]) -> tuple[int, socket.socket]:
        """The pid of a process that has become the program, and the socket over which its status comes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._mutex:
            if self._control is None:
                self._process, self._control = _start()
            socket.send_fds(self._control, [json.dumps(program).encode()], [theirs.fileno(), *descriptors])
        told = json.loads(ours.recv(100) or "{}")
        if "pid" not in told:
            ours.close()
            raise RuntimeError(f"{program['module']} could not be forked; standard error says why")
        return told["pid"], ours


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in _ENVIRONMENT.items() if name not in _TAKEN_OVER}
    # Under another name than that of a program's first module.
    text = (
        "__name__ = 'nursery'; exec(compile(open(__import__('sys').argv.pop(1)).read(), '<nursery>', 'exec'))"
    )
    with theirs:
        process = _started(
            [sys.executable, "-c", text, str(_NURSERY), str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    return process, ours


def _read_at_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_THE_START) and name not in _TAKEN_OVER
    }


_nursery = Nursery()


class Popen(subprocess.Popen[Any]):
    """A program, forked or started."""

    _status: socket.socket | None = None

    def _execute_child(self, *given: Any, **named: Any) -> None:
        arguments = _signature.bind(self, *given, **named).arguments
        command, environment = arguments["args"], arguments["env"]
        environment = dict(os.environ if environment is None else environment)
        if not _can_be_forked(command, arguments) or not _nursery.fits(environment):
            super()._execute_child(*given, **named)  # type: ignore[misc]
            return
        descriptors = {0: arguments["p2cread"], 1: arguments["c2pwrite"], 2: arguments["errwrite"]}
        descriptors = {number: number if fd == -1 else fd for number, fd in descriptors.items()}
        descriptors |= {descriptor: descriptor for descriptor in arguments["pass_fds"]}
        folder = str(Path(arguments["cwd"] or "").absolute())
        program = {
            "module": command[2],
            "arguments": command[3:],
            "folder": folder,
            "environment": environment,
            "numbers": [*descriptors],
            "mask": _umask(),
            "new_session": bool(arguments["start_new_session"]),
            "blocked": [*signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            "ignored": [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
        }
        self.pid, self._status = _nursery.fork(program, [*descriptors.values()])
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
        if not status:
            raise ChildProcessError(
                "the process that forks programs has ended, so nobody knows how this one did"
            )
        return self.pid, json.loads(status)["status"]

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


def _can_be_forked(command: Any, arguments: Mapping[str, Any]) -> bool:
    return (
        isinstance(command, list)
        and len(command) > 2
        and command[:2] == [sys.executable, "-m"]
        and all(isinstance(argument, str) for argument in command)
        and command[2].startswith(_MODULES)
        and not any(arguments.get(name) for name in _ONLY_STARTED)
        and arguments.get("process_group", -1) in (None, -1)
        and arguments.get("umask", -1) == -1
    )


def _umask() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)

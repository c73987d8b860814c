"""Writes down what a program sees of the world, then does as its argument says."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path


def descriptors() -> list[int]:
    found = []
    for number in range(256):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found


def world() -> dict[str, object]:
    mask = os.umask(0)
    os.umask(mask)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "arguments": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "command": sys.orig_argv[1:],
        "main": [
            __name__,
            __spec__.name if __spec__ else None,
            sys.modules["__main__"].__dict__ is globals(),
        ],
        "folder": str(Path.cwd()),
        "path": sys.path,
        "environment": dict(os.environ),
        "session": os.getsid(0) == os.getpid(),
        "group": os.getpgid(0) == os.getpid(),
        "mask": mask,
        "parent": os.getppid() != 1,
        "descriptors": descriptors(),
        "streams": [[s.fileno(), s.encoding, s.errors, getattr(s, "line_buffering", None)] for s in streams],
        "names": [stream.name for stream in streams],
        "garbage": gc.get_threshold(),
        "through": [getattr(s, "write_through", None) for s in streams],
        "signals": {
            name: str(signal.getsignal(getattr(signal, name)))[:30]
            for name in ("SIGINT", "SIGTERM", "SIGCHLD", "SIGPIPE", "SIGHUP")
        },
        "blocked": [*map(str, signal.pthread_sigmask(signal.SIG_BLOCK, ()))],
        "threads": threading.active_count(),
        "faults": faulthandler.is_enabled(),
        "input": sys.stdin.readline(),
        "hash": hash("a text"),
    }


if __name__ == "__main__":
    print(json.dumps(world()), flush=True)
    match sys.argv[1]:
        case "fail":
            raise ValueError("on purpose")
        case "exit":
            sys.exit(7)
        case "wait":
            signal.pause()

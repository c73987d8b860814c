"""``pystreams`` and ``python -m pystreams``: the command line.

Everything is imported in ``main``, so that Ctrl-C ends a command quietly from its first moment on.
"""

from __future__ import annotations

import os
import signal

__all__ = ["main"]


def main() -> None:
    """Run the command of the process' arguments, and exit with its code."""
    # An import that a KeyboardInterrupt cuts short may raise another error. Whoever has SIGINT ignored wants it so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from pystreams.cli.main import main as run

    run()


def _end(number: int, _frame: object) -> None:
    """End at once with the exit code of shells: nothing has begun yet."""
    os._exit(128 + number)


if __name__ == "__main__":
    main()

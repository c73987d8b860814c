"""What all tests share: those that ask Java Kafka Streams skip, visibly, where it cannot be asked."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about who else is busy on the machine than about the code.
settings.register_profile("unhurried", parent=settings.default, deadline=None)
settings.load_profile("unhurried")


def why_no_oracle() -> str | None:
    """What is missing to ask Java Kafka Streams; None if nothing is."""
    named = os.environ.get("PYSTREAMS_ORACLE")
    if not named:
        return "PYSTREAMS_ORACLE names no oracle"
    if not Path(named).is_file():
        return f"PYSTREAMS_ORACLE names {named}, which is not a file"
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"the oracle needs {' and '.join(missing)}" if missing else None


def pytest_configure() -> None:
    """Have what tests start hear Ctrl-C and a closed terminal: a shell that runs the tests in the background has all of
    them ignore the one, nohup the other. The tests themselves go on without their terminal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # Unlike what is ignored, a handler is not handed down.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``oracle`` with the reason."""
    reason = why_no_oracle()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("oracle"):
            item.add_marker(pytest.mark.skip(reason=reason))

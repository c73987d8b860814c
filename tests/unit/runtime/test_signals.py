"""A signal stops the main thread at whatever moment it comes."""

from __future__ import annotations

import subprocess
import sys

#: The main thread is where it is for a moment at the beginning and at the end of each ``stop.wait``.
IN_THE_MIDDLE_OF_A_WAIT = """
import os, signal, threading
from pystreams.runtime.signals import stop_on_signals
stop = threading.Event()
with stop_on_signals(stop):
    with stop._cond:
        os.kill(os.getpid(), signal.SIGTERM)
    stop.wait()
print("stopped")
"""


def test_a_signal_that_comes_in_the_middle_of_a_wait_for_it_blocks_nobody():
    command = [sys.executable, "-c", IN_THE_MIDDLE_OF_A_WAIT]
    ended = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    assert ended.stdout == "stopped\n"

"""Spark's masters by their names. Nothing of Spark is imported for that."""

from __future__ import annotations

import re
from typing import Final

#: How often Spark tries a task before it gives up, where the master does not say.
TASK_FAILURES_MAX: Final = 4

#: A server of Spark Connect; its parameters, a token among them, come behind ``/;``.
_CONNECT: Final = "sc://"


def is_connect(master: str) -> bool:
    """Whether it is a server of Spark Connect."""
    return master.startswith(_CONNECT)


def shown_master(master: str) -> str:
    """A master for people, without the token that it may have."""
    return master.partition("/;")[0] if is_connect(master) else master


def with_retries(master: str) -> str:
    """``local[2]`` as ``local[2,4]``: without a number of failures, Spark's local master tries nothing twice."""
    if master == "local":
        return f"local[1,{TASK_FAILURES_MAX}]"
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TASK_FAILURES_MAX}]", master)

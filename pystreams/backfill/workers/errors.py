"""An error of pystreams on its way from a worker process to the driver: as data in the text of another error.

Not every process can unpickle an error and its causes, and Spark hands on text alone.
"""

from __future__ import annotations

import base64
import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pystreams import errors
from pystreams.errors import StreamsError

_SENT = re.compile(r"pystreams-error:([A-Za-z0-9+/=]+):")


class WorkerError(Exception):
    """In a worker: a ``StreamsError`` as data. In the driver: the cause of one, with the traceback that it had."""


@contextmanager
def sending_errors() -> Iterator[None]:
    """In a worker: convert an error of pystreams, so that it reaches the driver as such."""
    try:
        yield
    except StreamsError as error:
        cause = error.__cause__
        content = {
            "type": type(error).__name__,
            "what": error.what,
            "where": error.place,
            "why": error.why,
            "hint": error.hint,
            "cause": "" if cause is None else "".join(traceback.format_exception(cause)),
        }
        text = base64.b64encode(json.dumps(content).encode()).decode()
        raise WorkerError(f"pystreams-error:{text}:\n{error}") from error


def error_in(text: str) -> StreamsError | None:
    """In the driver: the error in the text of what a worker raised; None if that was no error of pystreams. Its cause
    has the traceback of the worker."""
    found = _SENT.search(text)
    if found is None:
        return None
    content = json.loads(base64.b64decode(found.group(1)))
    kind: type[StreamsError] = getattr(errors, content["type"], StreamsError)
    error = kind(content["what"], where=content["where"], why=content["why"], hint=content["hint"])
    error.__cause__ = WorkerError(content["cause"]) if content["cause"] else None
    return error

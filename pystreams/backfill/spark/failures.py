"""Errors of pystreams on their way from a worker to the driver.

Spark hands on what a worker raised as text, traceback and all. An error that was raised for people to read goes along
as data in that text, and is the same error again in the driver.
"""

from __future__ import annotations

import base64
import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pystreams import errors
from pystreams.errors import StreamsError

_TOLD = re.compile(r"pystreams-error:([A-Za-z0-9+/=]+):")


class WorkerError(Exception):
    """In a worker: a ``StreamsError`` as data. In the driver: the cause of one, with the traceback that it had."""


@contextmanager
def told() -> Iterator[None]:
    """In a worker: have an error of pystreams reach the driver as such."""
    try:
        yield
    except StreamsError as error:
        cause = error.__cause__
        content = {
            "type": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "why": error.why,
            "hint": error.hint,
            "cause": "" if cause is None else "".join(traceback.format_exception(cause)),
        }
        text = base64.b64encode(json.dumps(content).encode()).decode()
        raise WorkerError(f"pystreams-error:{text}:\n{error}") from error


@contextmanager
def heard() -> Iterator[None]:
    """In the driver: raise a worker's error as what it was; all others as they come."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        _raise_again(error)


def _raise_again(error: Exception) -> NoReturn:
    found = _TOLD.search(str(error))
    if found is None:
        raise error
    content = json.loads(base64.b64decode(found.group(1)))
    kind: type[StreamsError] = getattr(errors, content["type"], StreamsError)
    cause = WorkerError(content["cause"]) if content["cause"] else None
    raise kind(content["what"], where=content["where"], why=content["why"], hint=content["hint"]) from cause

"""Turns errors of Spark's workers and its JVM into errors for users.

Spark hands on what a worker raised as text, traceback and all. That text contains the error of a user as data
(workers/errors.py). For all others it contains a reason somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pystreams.backfill.locations import shown
from pystreams.backfill.workers.errors import error_in
from pystreams.errors import AppLoadError

_MISSING_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
#: The last line of a traceback of Python.
_RAISED = re.compile(r"^(?!java\.|org\.|scala\.)[A-Za-z_][\w.]*(?:Error|Exception)\b.*", re.MULTILINE)
#: The message of a server of Spark Connect, or of the connection to it.
_GRPC = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
#: The beginnings of the JVM's messages.
_JAVA_PREFIX = re.compile(
    r"^(?:Caused by: |: )?(?:(?:[\w$]+\.)+[A-Z][\w$]*(?:Exception|Error): )*(?:[a-z][\w$]*\.)+(?=[A-Z])"
)


@contextmanager
def receiving_errors() -> Iterator[None]:
    """In the driver: raise a worker's error as what it was; ``AppLoadError`` for a module that workers do not have; all
    others as they come."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        _raise_again(error)


def _raise_again(error: Exception) -> NoReturn:
    sent = error_in(str(error))
    if sent is not None:
        raise sent from sent.__cause__
    missing = _MISSING_MODULE.search(str(error))
    if missing is not None:
        raise not_importable(missing[1]) from error
    raise error


def not_importable(module: str) -> AppLoadError:
    """The error for a module that workers cannot import."""
    return AppLoadError(
        f"Spark's workers cannot import {module}",
        why=f"the Python that they run has no module {module}",
        hint="send a module of your own with --py-files (py_files); packages must be in the workers' Python, which"
        " PYSPARK_PYTHON names when Spark is started",
    )


def other_python(worker: str, why: str) -> AppLoadError:
    """The error for workers on this machine that run a Python without pystreams, or another version of Python."""
    return AppLoadError(
        "Spark's workers cannot import pystreams",
        where=worker,
        why=why,
        hint="run these lines before the session is made (end one that there is with spark.stop()): import os, sys; "
        'os.environ["PYSPARK_PYTHON"] = sys.executable. In a script, spark_session(...) does that by itself',
    )


def reason_of(error: Exception) -> str:
    """The reason of a failure, extracted from Spark's message: the answer of a server, the last line of a worker's
    traceback, or the last cause in the JVM; without the secrets in URLs."""
    text = str(error).strip()
    answered = _GRPC.search(text)
    if answered is not None:
        return shown(answered[1])
    raised = _RAISED.findall(text)
    if raised:
        return shown(raised[-1].strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("at ", "...", "An error occurred while calling"))]
    causes = [line for line in said if line.startswith("Caused by:")]
    return shown(_JAVA_PREFIX.sub("", (causes or said[:1] or [type(error).__name__])[-1]))

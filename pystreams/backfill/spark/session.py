"""A Spark session for a program that has none: for the command line, scripts and notebooks."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pystreams.backfill.spark.arrow import no_word_about_pandas

#: How often Spark tries a task before it gives up, where the master does not say.
TASK_FAILURES_MAX = 4


@contextmanager
def spark_session(
    master: str, *, app_name: str, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that is stopped at the end. ``conf`` are Spark's settings, which go over those chosen here.

    On this machine (``local[...]``) a task is tried again as on a cluster, and workers run this very Python.
    """
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **(conf or {})}
    builder = SparkSession.builder.master(with_retries(master)).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _worker_python(master), no_word_about_pandas():
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        _stop(session)


def _stop(session: SparkSession) -> None:
    """Stop a session, unless its JVM has ended before: a scheduler sends SIGTERM to the whole process group. What ended
    the work is what counts then."""
    with warnings.catch_warnings(), suppress(OSError, Py4JError):
        warnings.simplefilter("ignore", RuntimeWarning)
        session.stop()


def with_retries(master: str) -> str:
    """``local[2]`` as ``local[2,4]``: without a number of failures, Spark's local master tries nothing twice."""
    if master == "local":
        return f"local[1,{TASK_FAILURES_MAX}]"
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TASK_FAILURES_MAX}]", master)


@contextmanager
def _worker_python(master: str) -> Iterator[None]:
    """Spark takes the interpreter of its workers from the environment, else whatever ``python3`` is."""
    if not master.startswith("local") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]

"""A Spark session for a program that has none: for the command line, scripts and notebooks."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pystreams.backfill.spark.arrow import no_word_about_pandas
from pystreams.backfill.spark.masters import is_connect, with_retries

#: The number of attempts after the first one to reach a server of Spark Connect. They take about five seconds; Spark's
#: default takes ten minutes.
_CONNECT_RETRIES: Final = 4

#: Workers on this machine run this very Python, which has pystreams.
_DAEMON: Final = "pystreams.backfill.spark.worker_daemon"


@contextmanager
def spark_session(
    master: str, *, app_name: str, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that is stopped at the end. ``conf`` are Spark's settings, which go over those chosen here.

    On this machine (``local[...]``) a task is tried again as on a cluster, and workers run this very Python. In a
    server of Spark Connect (``sc://...``) the session has the server's name, and ``conf`` only settings of sessions.
    """
    with no_word_about_pandas():
        session = (
            _connected(master, conf or {}) if is_connect(master) else _started(master, app_name, conf or {})
        )
    try:
        yield session
    finally:
        _stop(session)


def _stop(session: SparkSession) -> None:
    """Stop a session, unless its JVM has ended before: a scheduler sends SIGTERM to the whole process group. Errors
    of the stop are ignored then, because the error that ended the work is reported."""
    with warnings.catch_warnings(), suppress(OSError, Py4JError):
        warnings.simplefilter("ignore", RuntimeWarning)
        session.stop()


def _started(master: str, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **conf}
    if master.startswith("local"):
        settings.setdefault("spark.python.daemon.module", _DAEMON)
    builder = SparkSession.builder.master(with_retries(master)).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _worker_python(master):
        return builder.getOrCreate()


def _connected(url: str, conf: Mapping[str, str]) -> SparkSession:
    """Raises ``PySparkException`` if there is no answer, or for settings that only the server itself can have."""
    session: SparkSession = SparkSession.builder.remote(url).getOrCreate()
    _require_answer(session)
    for name, value in conf.items():
        session.conf.set(name, value)
    return session


def _require_answer(session: Any) -> None:
    """Ask the server for something, but not for as long as when it was there before."""
    # Its package needs those that only users of Spark Connect have.
    from pyspark.sql.connect.client.retries import DefaultPolicy

    usual = session.client.get_retry_policies()
    session.client.set_retry_policies([DefaultPolicy(max_retries=_CONNECT_RETRIES)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
        _ = session.version
    session.client.set_retry_policies(usual)


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

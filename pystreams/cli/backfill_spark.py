"""Spark for a command: started, stopped, and quiet. What it says goes to a file, not between progress and results."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pystreams.backfill.places import shown
from pystreams.errors import ConfigError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pystreams.backfill.executor import Executor

#: So many lines of what Spark says are shown when it fails.
_LINES = 3
_TIME = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ")
_ERROR = re.compile(r"Exception\b|^ERROR|Error\b")


@contextmanager
def spark_executor(
    master: str, app_name: str, conf: Mapping[str, str], py_files: Sequence[str], log: Path | None
) -> Iterator[Executor]:
    """An executor on a Spark of its own. ``log`` is where Spark and its workers write; None: to standard error.

    Raises ``ConfigError`` if Spark does not start, ``StateError`` if it fails at work.
    """
    from pystreams.backfill import SparkExecutor

    with quiet_session(master, app_name, conf, log) as session:
        yield SparkExecutor(session, py_files=py_files)


@contextmanager
def quiet_session(
    master: str,
    app_name: str,
    conf: Mapping[str, str],
    log: Path | None,
    hint: str = "mend that, and go on with --resume",
) -> Iterator[SparkSession]:
    """A session. Raises ``ConfigError`` if Spark does not start, ``StateError`` if it fails at work."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pystreams.backfill import spark_session
    from pystreams.backfill.spark.failures import reason_of

    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_py4js)
    where = "" if log is None else f"its log: {log}"
    with ExitStack() as stack:
        try:
            with _written_to(log):
                session = stack.enter_context(spark_session(master, app_name=app_name, conf=conf))
        except (PySparkException, Py4JError) as error:
            raise ConfigError(
                f"Spark does not start on {master}",
                where=where,
                why=_last_lines(log) or reason_of(error),
                hint="is the master right, is Java 17 or newer there? Without Spark: --master none",
            ) from None
        try:
            yield session
        except (PySparkException, Py4JError) as error:
            raise StateError(
                f"Spark failed on {master}",
                where=where,
                why=reason_of(error),
                hint=hint,
            ) from None


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """It logs with tracebacks what it raises anyway, and a Ctrl-C on top; to the root logger, so by no name."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _written_to(log: Path | None) -> Iterator[None]:
    """Processes that are started inside have ``log`` as their standard error, for as long as they live."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)


def _last_lines(log: Path | None) -> str:
    """What a log ends with: its last errors, else its last lines. Without stack traces, and without the time of day."""
    if log is None:
        return ""
    lines = log.read_text(errors="replace").splitlines()
    said = [_TIME.sub("", line) for line in lines if line.strip() and not line.startswith(("\t", " "))]
    errors = [line for line in said if _ERROR.search(line)]
    return shown("\n".join(list(dict.fromkeys(errors))[-_LINES:] or said[-_LINES:]))

"""Spark for a command: checks its packages, starts and stops a session, and keeps its output out of the terminal.

The output of Spark goes to a file, not between progress and results.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pystreams.backfill.locations import shown
from pystreams.backfill.spark.masters import is_connect, shown_master
from pystreams.cli.terminal.console import note
from pystreams.distribution import install_command
from pystreams.errors import ConfigError, StateError
from pystreams.folders import make_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: The value of ``--master`` for a command without Spark.
NO_SPARK = "none"

RESUME = "correct that, and continue with --resume"

#: The packages that Spark Connect needs beside Spark's own, and the modules in them.
_OF_CONNECT: Final = {"grpcio": "grpc", "grpcio-status": "grpc_status", "zstandard": "zstandard"}

#: The number of lines of Spark's log that are shown when it fails.
_LINES = 3
_TIME = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ")
_ERROR = re.compile(r"Exception\b|^ERROR|Error\b")


def require_packages(*, spark: bool, connect: bool = False) -> None:
    """Raises ``ConfigError`` if a package is missing, with ``spark`` also if Spark's or Java is. With ``connect``, Java
    is elsewhere, and the packages of Spark Connect are needed."""
    needed = ["pyarrow", "pandas", "pyspark"] if spark else ["pyarrow", "numpy", "cloudpickle", "loky"]
    modules = {name: name for name in needed} | (_OF_CONNECT if connect else {})
    missing = [name for name, module in modules.items() if find_spec(module) is None]
    if missing:
        extras = "backfill,spark-connect" if connect else "backfill"
        raise ConfigError(
            f"This command needs {' and '.join(missing)}",
            why=f"{'they are' if len(missing) > 1 else 'it is'} not installed for {sys.executable}",
            hint=f"install the packages that backfills and archives need: {install_command(extras)}",
        )
    if spark and not connect and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise ConfigError(
            "Spark needs Java, and there is none",
            why="java is not on the PATH, and JAVA_HOME is not set",
            hint=f"install Java 17, or run without Spark: --master {NO_SPARK}",
        )


def file_names(text: str) -> Sequence[str]:
    """The names in the text of ``--py-files``."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@contextmanager
def quiet_session(
    master: str,
    app_name: str,
    conf: Mapping[str, str],
    log: Path | None,
    hint: str = RESUME,
    because: str = "",
) -> Iterator[SparkSession]:
    """A Spark session without log output; a note says where it is, and why. Raises ``ConfigError`` if Spark does not
    start, ``StateError`` if it fails at work."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pystreams.backfill import spark_session
    from pystreams.backfill.spark.failures import reason_of

    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_py4js)
    if is_connect(master):
        # The server has a log of its own.
        log = None
        note(f"Connecting with Spark at {shown_master(master)}")
    else:
        reason = f", because {because}" if because else ""
        note(f"Starting Spark on {master}{reason}" + (f"; its log is {log}" if log else ""))
    where = "" if log is None else f"its log: {log}"
    with ExitStack() as stack:
        try:
            with _written_to(log):
                session = stack.enter_context(spark_session(master, app_name=app_name, conf=conf))
        except (PySparkException, Py4JError) as error:
            raise _not_there(master, where, _last_lines(log) or reason_of(error)) from None
        try:
            yield session
        except (PySparkException, Py4JError) as error:
            raise StateError(
                f"Spark failed on {shown_master(master)}",
                where=where,
                why=reason_of(error),
                hint=hint,
            ) from None


def _not_there(master: str, where: str, why: str) -> ConfigError:
    if is_connect(master):
        return ConfigError(
            f"Spark cannot be used at {shown_master(master)}",
            why=why,
            hint="check the address, and that a server of Spark Connect runs there, in the version of this pyspark; "
            "--conf can only name settings of a session",
        )
    return ConfigError(
        f"Spark does not start on {master}",
        where=where,
        why=why,
        hint="check that the master is right, and that Java 17 or newer is installed; or run without "
        f"Spark: --master {NO_SPARK}",
    )


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Py4J logs tracebacks of errors that it also raises, and of Ctrl-C. It uses the root logger, so a name cannot
    filter them."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _written_to(log: Path | None) -> Iterator[None]:
    """Processes that are started within the ``with`` block write their standard error to ``log``, as long as they
    live."""
    if log is None:
        yield
        return
    make_folder(log.parent)
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
    """The end of a log: its last errors, else its last lines, without stack traces and times."""
    if log is None:
        return ""
    lines = log.read_text(errors="replace").splitlines()
    said = [_TIME.sub("", line) for line in lines if line.strip() and not line.startswith(("\t", " "))]
    errors = [line for line in said if _ERROR.search(line)]
    return shown("\n".join(list(dict.fromkeys(errors))[-_LINES:] or said[-_LINES:]))

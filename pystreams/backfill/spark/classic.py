"""Access to a Spark whose driver is in this process: there is a JVM beside it, and the session has a context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from pystreams.backfill.compute.executor import Report
from pystreams.backfill.spark.arrow import in_session
from pystreams.backfill.spark.hadoop_folder import HadoopFolder
from pystreams.backfill.spark.worker_python import check_python
from pystreams.backfill.workers.progress import Reporter, listening


class ClassicAccess:
    """Implements ``access.Access``."""

    def __init__(self, session: SparkSession, py_files: Sequence[str]) -> None:
        """Raises ``AppLoadError`` if workers on this machine have no pystreams."""
        self._users_session = session
        self._context = session.sparkContext
        if (self._context.master or "").startswith("local"):
            check_python(self._context.pythonExec)
        self.session = session.newSession()
        for path in py_files:
            self._context.addPyFile(path)

    def folder(self, location: str) -> HadoopFolder:
        return HadoopFolder(self.session, location)

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        self._context.setJobDescription(f"pystreams: {what}")
        try:
            yield
        finally:
            self._context.setJobDescription(None)  # type: ignore[arg-type]

    def listening(self, report: Report) -> AbstractContextManager[Reporter]:
        return listening(*addresses_of(self._context), report)

    def in_users_session(self, rows: DataFrame) -> DataFrame:
        return in_session(rows, self._users_session)


def addresses_of(context: SparkContext) -> tuple[str, str]:
    """The address on which the driver listens, and the one by which workers reach it. In containers they may differ."""
    if (context.master or "").startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    conf = context.getConf()
    host = conf.get("spark.driver.host")
    assert host is not None, "Spark sets it when it starts"
    # Spark writes addresses of IPv6 in brackets.
    return (conf.get("spark.driver.bindAddress") or host).strip("[]"), host.strip("[]")

"""The access to Spark that a backfill needs beyond a session. It depends on where Spark's driver is.

It is in this process (``classic``), with a JVM that this process calls, or in a server of Spark Connect (``connect``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pystreams.backfill.compute.executor import Report
from pystreams.backfill.spark.classic import ClassicAccess
from pystreams.backfill.spark.connect import ConnectAccess
from pystreams.backfill.staging.manifest_files import Folder
from pystreams.backfill.workers.progress import Reporter


class SparkFolder(Folder, Protocol):
    """A staging folder: this process works with its manifest, Spark with the slices in it."""

    @property
    def location(self) -> str:
        """Its URL, as Spark takes it."""
        ...


class Access(Protocol):
    """Access to Spark for one executor."""

    @property
    def session(self) -> SparkSession:
        """The executor's own session, beside the user's."""
        ...

    def folder(self, location: str) -> SparkFolder:
        """Raises ``ConfigError`` or ``StateError`` for a place that cannot be a staging folder."""
        ...

    def named(self, what: str) -> AbstractContextManager[None]:
        """A context in which Spark's work has this name in Spark's UI."""
        ...

    def listening(self, report: Report) -> AbstractContextManager[Reporter]:
        """A context in which ``report`` is called with the reports of tasks."""
        ...

    def in_users_session(self, rows: DataFrame) -> DataFrame:
        """The same rows in the user's session: its settings count, its views may refer to them."""
        ...


def access_to(session: SparkSession, py_files: Sequence[str]) -> Access:
    """``py_files`` are for the workers. Raises ``ConfigError`` for a session with which no backfill can run."""
    return ClassicAccess(session, py_files) if _is_classic(session) else ConnectAccess(session, py_files)


def parallelism_of(session: SparkSession) -> int:
    """The default number of Spark's tasks."""
    if _is_classic(session):
        return session.sparkContext.defaultParallelism
    # Spark Connect cannot be asked for the default parallelism, but a range has that number of partitions.
    return session.range(10_000).select(sql.spark_partition_id().alias("id")).distinct().count()


def _is_classic(session: SparkSession) -> bool:
    return hasattr(session, "_jsparkSession")

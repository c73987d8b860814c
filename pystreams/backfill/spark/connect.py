"""Access to a Spark whose driver is in a server of Spark Connect. This process has sessions there, and nothing else:
no JVM, and no file systems of Spark's."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pystreams.backfill.compute.executor import Report
from pystreams.backfill.locations import is_url, shown
from pystreams.backfill.staging.manifest_files import LocalFolder
from pystreams.backfill.workers.progress import Reporter
from pystreams.errors import ConfigError


class ConnectAccess:
    """Implements ``access.Access``. Tasks report no progress, because workers need not reach this process."""

    def __init__(self, session: SparkSession, py_files: Sequence[str]) -> None:
        """Raises ``ConfigError`` for a Spark whose sessions cannot make others."""
        if "newSession" not in dir(type(session)):
            raise ConfigError(
                "a backfill over Spark Connect needs Spark 4.3 or newer",
                why="this session cannot make another one, whose settings are those of the backfill",
                hint="install a newer pyspark and start the server with it, or run the backfill with spark-submit",
            )
        self._users_session = session
        self.session: SparkSession = session.newSession()
        # A session that is not stopped here closes its connection later, when Python has ended all threads, and then
        # waits for one of them.
        atexit.register(self.session.stop)
        for one in (session, self.session):
            for path in py_files:
                one.addArtifacts(path, pyfile=True)

    def folder(self, location: str) -> SharedFolder:
        if is_url(location):
            raise ConfigError(
                f"over Spark Connect a backfill cannot be staged at {shown(location)}",
                why="the manifest is written by this process, which does not have the file systems of the server",
                hint="stage in a folder that this machine, the server and Spark's workers mount at the same path; or "
                "run the backfill with spark-submit",
            )
        return SharedFolder(self.session, Path(location).absolute())

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        """A tag, in which there can be no comma: the server describes its jobs itself."""
        tag = f"pystreams: {what}".replace(",", "")
        for session in (self.session, self._users_session):
            session.addTag(tag)
        try:
            yield
        finally:
            for session in (self.session, self._users_session):
                session.removeTag(tag)

    @contextmanager
    def listening(self, report: Report) -> Iterator[Reporter]:
        yield Reporter(None, b"")

    def in_users_session(self, rows: DataFrame) -> DataFrame:
        given: Any = rows
        moved: DataFrame = type(given)(given._plan, self._users_session)
        return moved


class SharedFolder(LocalFolder):
    """Implements ``access.SparkFolder``: a folder that this machine and the server have at the same path."""

    def __init__(self, session: SparkSession, path: Path) -> None:
        super().__init__(path)
        self._session = session
        self.location = f"file://{path}"

    def create(self, name: str, content: bytes) -> None:
        """As ``Folder.create``. Raises ``ConfigError`` if the server does not see the file; then it does not stay."""
        super().create(name, content)
        try:
            # To know the columns, the server looks for the file.
            self._session.read.text(f"{self.location}/{name}").schema  # noqa: B018
        except PySparkException as error:
            self.delete(name)
            if "PATH_NOT_FOUND" not in str(error):
                raise
            raise ConfigError(
                "the server of Spark Connect does not see the staging folder",
                where=self.url,
                why="it has no such folder, or another one",
                hint="stage in a folder that this machine, the server and Spark's workers mount at the same path",
            ) from None

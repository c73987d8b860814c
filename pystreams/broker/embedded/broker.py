"""The embedded log as a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from pystreams.broker.embedded.admin import EmbeddedAdmin
from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.broker.embedded.database import BUSY_TIMEOUT_MS, Database, lock_directory, prepare
from pystreams.broker.embedded.membership import EmbeddedMember
from pystreams.broker.embedded.producer import EmbeddedProducer
from pystreams.broker.embedded.pulse import Pulse
from pystreams.broker.embedded.transactions import EmbeddedGroupCommitter, EmbeddedTransactionalProducer
from pystreams.broker.group_application import GroupApplication
from pystreams.broker.missing_log import check_embedded_log
from pystreams.broker.port import Assign, ConsumerPurpose, TransactionContent
from pystreams.clock import Clock, SystemClock
from pystreams.ids import TaskId
from pystreams.metrics import Sample


class EmbeddedBroker:
    """A log in one SQLite file, for the processes of one machine. See ``port.Broker``.

    Creates the file and its directories if they do not exist. SQLite's ``-wal`` and ``-shm`` files and the directory
    ``<path>.locks`` are beside the file. A member that does not poll for ``max_poll_interval_ms``, or whose process is
    frozen for ``session_timeout_ms``, is removed if another member notices; a dead process is noticed at once.
    ``busy_timeout_ms`` limits the wait for another process's transaction.

    Raises ``ConfigError`` if the path cannot hold a log, or has another kind of file or a newer log.
    """

    transactional = True
    reads_committed = True
    notices_deaths = True
    assigns_tasks = False
    compacts_by_timestamp = False

    def __init__(
        self,
        path: str | Path,
        clock: Clock | None = None,
        *,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        self._path = Path(path)
        self._clock = SystemClock() if clock is None else clock
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        self._busy_timeout_ms = busy_timeout_ms
        self._locks = lock_directory(self._path)
        self._mutex = threading.Lock()
        self._open: set[Database] = set()
        self._pulse = Pulse(self._connect, self._clock, heartbeat_interval_ms, max_poll_interval_ms)
        self.log_id = f"embedded-{prepare(self._path, busy_timeout_ms):x}"

    @property
    def description(self) -> str:
        return f"embedded log at {self._path}"

    def admin(self) -> EmbeddedAdmin:
        return EmbeddedAdmin(self._connect(), self._locks, self._clock, self._disconnect)

    def consumer(self, client_id: str, purpose: ConsumerPurpose = "main") -> EmbeddedConsumer:
        return EmbeddedConsumer(self._connect(), self._disconnect)

    def producer(
        self,
        client_id: str,
        transactional_id: str | None = None,
        content: TransactionContent | None = None,
    ) -> EmbeddedProducer:
        """Only ``client_id`` is used: a commit is a single transaction, which also checks the membership."""
        return EmbeddedProducer(self._connect(), self._locks, self._clock, self._disconnect)

    def samples(self) -> Sequence[Sample]:
        """No metrics, because its clients have no connections."""
        return ()

    def transactional_producer(self, client_id: str, transactional_id: str) -> EmbeddedTransactionalProducer:
        """Raises ``BrokerError`` while another producer uses this id."""
        return EmbeddedTransactionalProducer(
            self.producer(client_id, transactional_id), self._locks, transactional_id, self.description
        )

    def group_committer(self, client_id: str, group: str, transactional_id: str) -> EmbeddedGroupCommitter:
        """Raises ``BrokerError`` while another committer uses this id."""
        return EmbeddedGroupCommitter(
            self._connect(), self._locks, self._clock, group, transactional_id, self._disconnect
        )

    def opener(self) -> Callable[[], EmbeddedBroker]:
        return partial(
            _reopened,
            self._path.absolute(),
            self._session_timeout_ms,
            self._heartbeat_interval_ms,
            self._max_poll_interval_ms,
            self._busy_timeout_ms,
        )

    def fence(self, content: TransactionContent, tasks: Collection[TaskId]) -> None:
        """Does nothing: a commit checks in its own transaction whether the member still has the partitions."""

    def member(
        self,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
        instance_id: str | None = None,
        transactional_id: str | None = None,
        application: GroupApplication | None = None,
    ) -> EmbeddedMember:
        """``instance_id`` has no effect, because a dead member is noticed at once, and a returning one gets its tasks
        back. ``transactional_id`` and ``application`` have no effect, either: the group's assignor assigns the
        tasks."""
        return EmbeddedMember(
            self._connect(),
            self._locks,
            self._clock,
            client_id,
            group,
            topics,
            user_data,
            assign,
            session_timeout_ms=self._session_timeout_ms,
            heartbeat_interval_ms=self._heartbeat_interval_ms,
            pulse=self._pulse,
            closed=self._disconnect,
        )

    def close(self) -> None:
        """Also closes the connections of consumers, producers and members that are still open."""
        self._pulse.close()
        with self._mutex:
            left_open, self._open = self._open, set()
        for database in left_open:
            database.close()

    def _connect(self) -> Database:
        database = Database(self._path, self._busy_timeout_ms)
        with self._mutex:
            self._open.add(database)
        return database

    def _disconnect(self, database: Database) -> None:
        with self._mutex:
            self._open.discard(database)
        database.close()


def _reopened(
    path: Path,
    session_timeout_ms: int,
    heartbeat_interval_ms: int,
    max_poll_interval_ms: int,
    busy_timeout_ms: int,
) -> EmbeddedBroker:
    """Open the same log in another process. A missing log is an error, because a new one would be a different log."""
    check_embedded_log(
        path,
        "a worker opens the log on its own machine: on a cluster put it on a file system that every worker can reach, "
        "or use Kafka",
    )
    return EmbeddedBroker(
        path,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=heartbeat_interval_ms,
        max_poll_interval_ms=max_poll_interval_ms,
        busy_timeout_ms=busy_timeout_ms,
    )

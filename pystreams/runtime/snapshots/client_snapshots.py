"""A client's snapshots: their folder, the part that takes them, and the part that fetches them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pystreams.broker.port import Admin
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.errors import StateError
from pystreams.metrics import Metrics
from pystreams.runtime.snapshots.fetching import SnapshotFetcher
from pystreams.runtime.snapshots.fitting import Fitting
from pystreams.runtime.snapshots.taking import SnapshotTaker
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.disk.scratch import Scratch
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)


class ClientSnapshots:
    """The snapshots of one client, which its threads share."""

    def __init__(
        self,
        folder: SnapshotFolder,
        config: StreamsConfig,
        fitting: Fitting,
        directory: StateDirectory,
        resources: RocksResources,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """Raises ``StateError`` if the state directory cannot be used."""
        self._scratch = Scratch(directory.path)
        self.fetcher = SnapshotFetcher(folder, fitting, self._scratch, directory, resources, clock, metrics)
        self.taker = SnapshotTaker(
            folder,
            fitting,
            self._scratch,
            clock,
            metrics,
            config.state_snapshot_interval_ms,
            config.state_snapshots_kept,
        )

    def close(self) -> None:
        """Stop. Called after all tasks are closed, and before the admin is closed."""
        self.taker.close()
        self.fetcher.close()
        try:
            self._scratch.close()
        except StateError as error:
            log.warning(
                "temporary files of snapshots cannot be deleted; the next start deletes them: %s", error
            )


def snapshots_of(
    config: StreamsConfig,
    built: BuiltTopology,
    admin: Admin,
    directory: StateDirectory,
    resources: RocksResources,
    clock: Clock,
    metrics: Metrics,
    origin: Callable[[], str],
    beginning: str | None,
) -> ClientSnapshots | None:
    """The snapshots of a client; None without ``state_snapshot_dir``. ``origin`` and ``beginning``: see ``Fitting``.
    Raises ``ConfigError``, ``StateError``."""
    if config.state_snapshot_dir is None:
        return None
    fitting = Fitting(built, admin, clock, origin, beginning)
    return ClientSnapshots(
        SnapshotFolder(config.state_snapshot_dir), config, fitting, directory, resources, clock, metrics
    )

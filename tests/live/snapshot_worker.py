"""A process that the tests kill.

python -m tests.live.snapshot_worker PATH STATE_DIR SNAPSHOTS [BOOTSTRAP_SERVERS]
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.runtime.streams import Streams

#: Short, so that the tests need not wait long for snapshots, nor for a process that was killed.
SETTINGS = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
    "commit_interval_ms": 100,
    "poll_ms": 10,
    "state_snapshot_interval_ms": 300,
    # Each record is one in the changelog.
    "statestore_cache_max_bytes": 0,
}


def counting(state_dir: Path, snapshots: str, **settings: Any) -> App:
    """A task with a store for each partition of ``in``."""
    app = App("travels", state_dir=state_dir, state_snapshot_dir=snapshots, **{**SETTINGS, **settings})
    counts = app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    counts.to_stream().to("out")
    return app


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    path, state_dir, snapshots, *servers = sys.argv[1:]
    if servers:
        app = counting(
            Path(state_dir), snapshots, bootstrap_servers=servers[0], processing_guarantee="exactly_once_v2"
        )
        Streams(app).run()
        return
    broker = EmbeddedBroker(Path(path) / "log.db", session_timeout_ms=6_000, heartbeat_interval_ms=500)
    Streams(counting(Path(state_dir), snapshots), broker=broker).run()
    broker.close()


if __name__ == "__main__":
    main()

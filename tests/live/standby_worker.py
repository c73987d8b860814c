"""A process that the tests kill.

python -m tests.live.standby_worker PATH STATE_DIR [BOOTSTRAP_SERVERS [PROCESSING_GUARANTEE]]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.runtime.streams import Streams

#: Short, so that the tests need not wait long for a process that was killed.
SETTINGS = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
    "commit_interval_ms": 100,
    "poll_ms": 10,
}


def counting(state_dir: Path, **settings: Any) -> App:
    """A task with a store for each partition of ``in``."""
    app = App("standbys", state_dir=state_dir, **{**SETTINGS, **settings})
    counts = app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    counts.to_stream().to("out")
    return app


def main() -> None:
    path, state_dir, *place = sys.argv[1:]
    if place:
        settings = dict(zip(("bootstrap_servers", "processing_guarantee"), place, strict=False))
        Streams(counting(Path(state_dir), num_standby_replicas=1, **settings)).run()
        return
    broker = EmbeddedBroker(Path(path) / "log.db", session_timeout_ms=6_000, heartbeat_interval_ms=500)
    Streams(counting(Path(state_dir), num_standby_replicas=1), broker=broker).run()
    broker.close()


if __name__ == "__main__":
    main()

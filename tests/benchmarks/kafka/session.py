"""A session of a benchmark on Kafka: a cluster and a folder of its own, the peers' programs, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.benchmarks.kafka.cluster import Cluster, cluster
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.outputs import OutputsDifferError
from tests.benchmarks.kafka.peers import Peer
from tests.benchmarks.kafka.running import RunFailedError
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench"


@dataclass(frozen=True)
class Session:
    """Where a benchmark runs, and whom it talks to. ``folder`` is deleted at the end."""

    name: str
    cluster: Cluster
    folder: Path
    console: Console

    def save(self, content: Mapping[str, Any]) -> None:
        """Keep the result as JSON, with the date and what the machine is."""
        now = datetime.now(UTC)
        path = FOLDER / "results" / f"{self.name}-{now:%Y-%m-%dT%H%M%S}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"date": now.isoformat(timespec="seconds"), "machine": facts(), **content}
        path.write_text(json.dumps(document, indent=1))
        self.console.print(f"Details: {path.relative_to(ROOT)}")


def run_session(
    name: str, peers: Sequence[Peer], work: Callable[[Session], None], bootstrap_servers: str | None = None
) -> int:
    """Run ``work``, on a broker that is there or on one of its own. The exit status: 1 if a run failed or outputs
    differ, 2 if the machine lacks something, 130 if it was stopped."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    missing = why_not() if bootstrap_servers is None else None
    for reason in (missing, *(peer.why_not() for peer in peers)):
        if reason is not None:
            console.print(reason)
            return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    for peer in peers:
        peer.build(FOLDER)
    folder = FOLDER / f"{name}-{os.getpid()}"
    try:
        with cluster(folder, bootstrap_servers) as found:
            work(Session(name, found, folder, console))
    except (OutputsDifferError, RunFailedError) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0

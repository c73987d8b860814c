"""Those who take turns at the applications of ``taken_over``: Java, and we. Each runs all applications of one run."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from pystreams import Streams
from pystreams.runtime.client_state import ClientState
from tests.interop.java_side import JavaApp, JavaSide
from tests.interop.taken_over import TAKEN, Gate, taken_over
from tests.kafka.support import Cluster
from tests.live.support import eventually, running

PATIENCE_S = 120.0
#: So that more waits between Java's sub-topologies than is fetched already.
_FETCHED_AT_ONCE = 5


class Side(Protocol):
    """A turn is ``start``, ``close_gates``, wait until nobody is ``under_way`` any more, ``stop``."""

    def state_dir(self, run: str) -> Path: ...

    def start(self, run: str) -> None:
        """Returns once all applications run."""

    def close_gates(self) -> None:
        """Have each application held up at its next result."""

    def under_way(self) -> set[str]:
        """The applications that are not held up yet."""
        ...

    def stop(self) -> None:
        """Stop all applications cleanly, wherever they are held up, and leave their groups."""


class Javas:
    """Kafka Streams."""

    def __init__(self, java: JavaSide, names: Sequence[str], path: Path) -> None:
        self._java = java
        self._names = names
        self._path = path
        self._ids: list[str] = []

    def state_dir(self, run: str) -> Path:
        return self._path / run / "java"

    def start_undisturbed(self, run: str, application_id: str) -> None:
        """All applications as one."""
        app = JavaApp(",".join(self._names), application_id, self.state_dir(application_id))
        self._java.start_runs(run, [app])

    def stop_undisturbed(self, application_id: str) -> None:
        self._java.stop(application_id)

    def start(self, run: str) -> None:
        apps = []
        for name in self._names:
            settings = {
                "max.poll.records": _FETCHED_AT_ONCE,
                "topology.optimization": TAKEN[name].topology_optimization,
                "processing.guarantee": TAKEN[name].processing_guarantee,
            }
            apps.append(JavaApp(name, f"{name}-{run}", self.state_dir(run), settings))
        self._ids = [app.application_id for app in apps]
        self._java.start_runs(run, apps)

    def close_gates(self) -> None:
        self._java.ask("gates", ids=self._ids, closed=True)

    def under_way(self) -> set[str]:
        return set(self._ids) - set(self._java.ask("waiting"))

    def stop(self) -> None:
        self._java.stop(*self._ids)
        self._ids = []


class Ours:
    """pystreams."""

    def __init__(self, cluster: Cluster, names: Sequence[str], path: Path) -> None:
        self._names = names
        self._path = path
        # Records end a wait. Looking for them all the time, the applications would leave nothing to other tests.
        calm = {"fetch.max.wait.ms": "300"}
        self._brokers = {
            guarantee: cluster.broker_with(client_settings=calm, exactly_once=guarantee == "exactly_once_v2")
            for guarantee in {TAKEN[name].processing_guarantee for name in names}
        }
        self._gates: dict[str, Gate] = {}
        self._clients: list[Streams] = []

    def state_dir(self, run: str) -> Path:
        return self._path / run / "ours"

    def start(self, run: str) -> None:
        self._gates = {name: Gate() for name in self._names}
        self._clients = [self._client(name, run) for name in self._names]
        with ThreadPoolExecutor(len(self._clients)) as pool:
            list(pool.map(Streams.start, self._clients))
        for streams in self._clients:
            streams.wait_for(
                lambda s=streams: s.state is ClientState.RUNNING or s.finished, 1000 * PATIENCE_S
            )
            running(streams)

    def _client(self, name: str, run: str) -> Streams:
        app = taken_over(
            name,
            run,
            self._gates[name],
            state_dir=self.state_dir(run),
            poll_ms=200,
            commit_interval_ms=100,
            statestore_cache_max_bytes=0,
        )
        return Streams(app, broker=self._brokers[TAKEN[name].processing_guarantee])

    def close_gates(self) -> None:
        for gate in self._gates.values():
            gate.close()

    def under_way(self) -> set[str]:
        return {name for name, gate in self._gates.items() if not gate.reached}

    def stop(self) -> None:
        clients, self._clients = self._clients, []
        with ThreadPoolExecutor(len(self._names)) as pool:
            closed = [pool.submit(streams.close, 1000 * PATIENCE_S) for streams in clients]
            eventually(lambda: all(map(_stopping, clients)), "all are about to stop", PATIENCE_S)
            for gate in self._gates.values():
                gate.open()
        assert all(done.result() for done in closed)
        assert [streams.failure for streams in clients if streams.failure is not None] == []


def _stopping(streams: Streams) -> bool:
    """Its thread will not take another record. (The client's state changes a little before.)"""
    return streams.finished or (
        streams.state is not ClientState.RUNNING
        and all(thread._requests.stop.is_set() for thread in list(streams._threads))
    )

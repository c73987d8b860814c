"""Runs each contestant over the same topics, and compares what it leaves with what the orders add up to."""

from __future__ import annotations

import os
import signal
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tests.benchmarks.catch_up.inputs import ORDERS, History
from tests.benchmarks.catch_up.watching import Look, Watch, spread_ms
from tests.benchmarks.kafka.cluster import PARTITIONS, Cluster
from tests.benchmarks.kafka.inputs import Feed
from tests.benchmarks.kafka.observer import StuckError
from tests.benchmarks.kafka.outputs import read_output
from tests.benchmarks.kafka.peers import PEERS, Command, Peer, Run
from tests.benchmarks.kafka.processes import ProcessTree
from tests.benchmarks.kafka.running import CLEAN_EXITS, RunFailedError, started, with_log
from tests.linux import children, command_line

#: How far the inputs are read when a worker is killed.
_KILL_AT = 0.4


@dataclass(frozen=True)
class Contestant:
    """Who catches up. ``killed``: one of its workers is, by SIGKILL, and starts again."""

    title: str
    peer: Peer
    processes: int = 1
    killed: bool = False
    options: tuple[str, ...] = ()


CONTESTANTS: Mapping[str, Contestant] = {
    "one": Contestant("pystreams, one process", PEERS["pystreams"]),
    "workers": Contestant(
        "pystreams, three workers, one killed",
        PEERS["pystreams"],
        3,
        killed=True,
        # What is waited for after the kill is not the subject.
        options=("-s", "session_timeout_ms=6000"),
    ),
    "as-java": Contestant(
        "pystreams, stream_time=java", PEERS["pystreams"], options=("-s", "stream_time=java")
    ),
    "java": Contestant("Java Kafka Streams", PEERS["java"]),
}


@dataclass(frozen=True)
class Outcome:
    """What one contestant came to. ``lost`` orders were dropped; ``twice`` counted after a kill: at least once."""

    contestant: str
    orders: int
    lost: int
    twice: int
    windows: int
    windows_incomplete: int
    seconds: float
    peak_state_bytes: int
    peak_rss_bytes: int
    spread_ms: int
    looks: Sequence[Look]


class Bench:
    """On one cluster; the orders are written once."""

    def __init__(self, cluster: Cluster, folder: Path, history: History, seed: int, console: Console) -> None:
        self._cluster = cluster
        self._folder = folder
        self._history = history
        self._seed = seed
        self._console = console

    def run(self, names: Sequence[str]) -> list[Outcome]:
        """Everyone in turn. Raises ``RunFailedError``."""
        history = self._history
        self._cluster.delete(lambda name: name.startswith("bench-"))
        feed = Feed(self._cluster.bootstrap_servers, history.source(), self._seed, PARTITIONS)
        self._cluster.create(*feed.source.topics)
        feed.extend_to(history.records)
        self._console.print(f"{history.records:,} orders of {history.hours:g} hours are written")
        outcomes = []
        for name in names:
            outcomes.append(self._measured(name, CONTESTANTS[name]))
            one = outcomes[-1]
            self._console.print(f"{one.contestant}: {one.seconds:.1f} s, {one.lost:,} orders lost")
        self._cluster.delete(lambda name: name.startswith("bench-"))
        return outcomes

    def _measured(self, name: str, contestant: Contestant) -> Outcome:
        group = f"bench-catch-up-{name}"
        folder = self._folder / group
        folder.mkdir(parents=True)
        run = Run(
            job="orders",
            application_id=group,
            bootstrap_servers=self._cluster.bootstrap_servers,
            inputs=(ORDERS,),
            output=f"{group}_out",
            folder=folder,
            threads=contestant.processes,
        )
        self._cluster.create(run.output)
        looks = self._watched(contestant, run)
        self._cluster.delete(lambda topic: topic.startswith(f"{group}-"))
        table = read_output(run.bootstrap_servers, run.job, run.output, PARTITIONS).table
        self._cluster.delete(run.output.__eq__)
        sold = Counter({_window(key): _count(value) for key, (_, value) in table.items()})
        truth = self._history.sold
        return Outcome(
            contestant=contestant.title,
            orders=truth.total(),
            lost=(truth - sold).total(),
            twice=(sold - truth).total(),
            windows=len(truth),
            windows_incomplete=len(truth - sold),
            seconds=looks[-1].time_s,
            peak_state_bytes=max(look.state_bytes for look in looks),
            peak_rss_bytes=looks[-1].peak_rss_bytes,
            spread_ms=spread_ms(looks, ORDERS, self._history.begin_ms, PARTITIONS),
            looks=looks,
        )

    def _watched(self, contestant: Contestant, run: Run) -> list[Look]:
        log = run.folder / "log.txt"
        killed: list[int] = []
        try:
            with (
                closing(
                    Watch(run.bootstrap_servers, run.application_id, run.inputs, run.folder / "state")
                ) as watch,
                started(_commands(contestant, run), log) as processes,
            ):

                def kill_one(look: Look) -> None:
                    if contestant.killed and not killed and look.share >= _KILL_AT:
                        killed.append(_worker_of(processes[0].pid))
                        os.kill(killed[0], signal.SIGKILL)

                looks = watch.until_caught_up(
                    ProcessTree(process.pid for process in processes),
                    lambda: all(process.poll() is None for process in processes),
                    kill_one,
                )
        except StuckError as error:
            raise RunFailedError(with_log(str(error), log)) from error
        if any(abs(process.returncode) not in CLEAN_EXITS for process in processes):
            raise RunFailedError(with_log(f"{run.application_id} did not stop cleanly", log))
        if contestant.killed and not killed:
            raise RunFailedError("all was read before a worker could be killed: give more --orders")
        return looks


def _commands(contestant: Contestant, run: Run) -> list[Command]:
    commands = contestant.peer.commands(run)
    return [replace(one, arguments=[*one.arguments, *contestant.options]) for one in commands]


def _worker_of(supervisor: int) -> int:
    """The process of one of its workers."""
    found = [pid for pid in children(supervisor) if "--number" in command_line(pid)]
    if not found:
        raise RunFailedError("there is no worker that could be killed")
    return found[-1]


def _window(key: bytes | None) -> tuple[str, int]:
    """City and start of a windowed key, as Java writes it."""
    assert key is not None
    return key[:-8].decode(), struct.unpack(">q", key[-8:])[0]


def _count(value: bytes | None) -> int:
    return 0 if value is None else struct.unpack(">q", value)[0]

"""The whole bench: inputs sized by a quick calibration, runs in turn, outputs compared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.kafka.cluster import PARTITIONS
from tests.benchmarks.kafka.inputs import Feed, source
from tests.benchmarks.kafka.observer import BEGIN, END
from tests.benchmarks.kafka.outputs import Output, check_equal, check_total
from tests.benchmarks.kafka.peers import PEERS, Peer, Run
from tests.benchmarks.kafka.running import Result, measure
from tests.benchmarks.kafka.session import Session

#: Records that a calibration reads: some seconds of work.
_CALIBRATION = {"stateless": 1_500_000, "wordcount": 250_000, "windows": 1_000_000, "join": 800_000}
#: A calibration is too short to reach full speed: runs of a minute were up to 1.6 times as fast.
_MARGIN = 1.8
#: What a second thread may bring, and as many again: then there are more records to read. The broker needs cores, too.
_GAIN = 0.5


@dataclass(frozen=True)
class Options:
    """What to measure. ``seconds``: steady work of the fastest peer; ``records`` instead fixes the input's size.

    With the least of ``threads`` each peer runs ``repeats`` times, with more of them once.
    """

    jobs: tuple[str, ...]
    peers: tuple[Peer, ...]
    threads: tuple[int, ...] = (1, 2)
    repeats: int = 2
    seconds: float = 30.0
    records: int | None = None
    seed: int = 1
    commit_interval_ms: int = 1_000
    #: Where pystreams leaves profiles; None: it is not profiled.
    profiles: Path | None = None


class Bench:
    """The runs of one session; their folders are below the session's."""

    def __init__(self, session: Session, options: Options) -> None:
        self._cluster = session.cluster
        self._folder = session.folder
        self._options = options
        self._console = session.console
        self._runs = 0

    def run(self) -> list[Result]:
        """Run all jobs. Raises ``OutputsDifferError`` and ``RunFailedError``."""
        return [result for job in self._options.jobs for result in self._job(job)]

    def _job(self, job: str) -> list[Result]:
        self._cluster.delete(lambda name: name.startswith("bench-"))
        feed = Feed(self._cluster.bootstrap_servers, source(job), self._options.seed, PARTITIONS)
        self._cluster.create(*feed.source.topics)
        peers = [peer for peer in self._options.peers if job in peer.jobs]
        scaling = [peer for peer in peers if peer.scales]
        least, *more = sorted(self._options.threads)
        self._write(feed, self._options.records or self._calibrated(feed, job, peers, least))
        results = self._turns(feed, job, peers, least, self._options.repeats)
        for threads in more if scaling else ():
            if self._options.records is None:
                fastest = max(result.rate for result in results if PEERS[result.peer].scales)
                self._write(feed, self._wanted(fastest * (1 + _GAIN * (threads / least - 1))))
            results += self._turns(feed, job, scaling, threads, 1)
        self._cluster.delete(lambda name: name.startswith("bench-"))
        return results

    def _turns(self, feed: Feed, job: str, peers: Sequence[Peer], threads: int, repeats: int) -> list[Result]:
        """All peers in turn, so often; on the same inputs, so all must write the same."""
        results: list[Result] = []
        first: Output | None = None
        for repeat in range(1, repeats + 1):
            for peer in peers:
                result, output = self._measure(feed, job, peer, threads, repeat)
                check_total(job, output, feed.source.expected)
                if first is None:
                    first = output
                else:
                    check_equal(self._cluster.bootstrap_servers, first, output)
                    self._cluster.delete(output.topic.__eq__)
                results.append(result)
                self._show(result)
        if first is not None:
            self._cluster.delete(first.topic.__eq__)
        return results

    def _calibrated(self, feed: Feed, job: str, peers: Sequence[Peer], threads: int) -> int:
        """Records for the wanted time of the fastest peer: each runs once on a few."""
        self._write(feed, _CALIBRATION[job])
        rates = []
        for peer in peers:
            result, output = self._measure(feed, job, peer, threads, 0)
            self._cluster.delete(output.topic.__eq__)
            rates.append(result.rate)
        return max(_CALIBRATION[job], self._wanted(max(rates) * _MARGIN))

    def _wanted(self, rate: float) -> int:
        return int(rate * self._options.seconds / (END - BEGIN))

    def _write(self, feed: Feed, records: int) -> None:
        if feed.records >= records:
            return
        before, started = feed.records, time.monotonic()
        feed.extend_to(records)
        seconds = time.monotonic() - started
        self._console.print(
            f"{feed.source.main}: {feed.records - before:,} records written in {seconds:.1f} s"
        )

    def _measure(self, feed: Feed, job: str, peer: Peer, threads: int, repeat: int) -> tuple[Result, Output]:
        self._runs += 1
        name = f"bench-{job}-{peer.name}-{threads}-{self._runs}"
        run = Run(
            job=job,
            application_id=name,
            bootstrap_servers=self._cluster.bootstrap_servers,
            inputs=feed.source.topics,
            output=f"{name}_out",
            folder=self._folder / name,
            threads=threads,
            commit_interval_ms=self._options.commit_interval_ms,
            profiles=self._options.profiles if repeat else None,
        )
        return measure(self._cluster, peer, run, feed.source.main, repeat)

    def _show(self, result: Result) -> None:
        self._console.print(
            f"{result.job} {result.peer} x{result.threads}: {result.rate:,.0f} records/s over"
            f" {result.steady.seconds:.1f} s, {result.cpu_us:.2f} µs CPU a record"
        )

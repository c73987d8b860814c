"""What exactly-once costs: each peer reads the same input at least once and exactly once, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from tests.benchmarks.kafka.cluster import PARTITIONS
from tests.benchmarks.kafka.inputs import Feed, source
from tests.benchmarks.kafka.outputs import Output, check_equal, check_total
from tests.benchmarks.kafka.peers import Peer, Run
from tests.benchmarks.kafka.report import TITLES
from tests.benchmarks.kafka.running import Result, measure
from tests.benchmarks.kafka.session import Session

AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"


@dataclass(frozen=True)
class Options:
    """What to measure: every job by every peer, ``repeats`` times with each interval and guarantee."""

    jobs: tuple[str, ...]
    peers: tuple[Peer, ...]
    intervals_ms: tuple[int, ...] = (1_000, 100)
    repeats: int = 2
    records: int = 4_000_000
    seed: int = 1


@dataclass(frozen=True)
class Price:
    """Medians of the runs of one peer on one job, in input records per second."""

    job: str
    peer: str
    interval_ms: int
    at_least_once: float
    exactly_once: float
    #: Of exactly-once compared with at least once.
    cpu_ratio: float

    @property
    def loss(self) -> float:
        """The share of the rate that exactly-once costs."""
        return 1 - self.exactly_once / self.at_least_once


class Bench:
    """The runs of one session; their folders are below the session's."""

    def __init__(self, session: Session, options: Options) -> None:
        self._cluster = session.cluster
        self._folder = session.folder
        self._options = options
        self._console = session.console
        self._runs = 0

    def run(self) -> list[Price]:
        """Run all jobs. Raises ``OutputsDifferError`` and ``RunFailedError``."""
        return [price for job in self._options.jobs for price in self._job(job)]

    def _job(self, job: str) -> list[Price]:
        options = self._options
        feed = Feed(self._cluster.bootstrap_servers, source(job), options.seed, PARTITIONS)
        self._cluster.create(*feed.source.topics)
        feed.extend_to(options.records)
        first: Output | None = None
        results: dict[tuple[int, str, str], list[Result]] = {}
        for _ in range(options.repeats):
            for interval_ms in options.intervals_ms:
                for peer in options.peers:
                    for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
                        result, output = self._measure(feed, job, peer, interval_ms, guarantee)
                        results.setdefault((interval_ms, peer.name, guarantee), []).append(result)
                        first = self._compared(feed, job, first, output)
        self._cluster.delete(lambda name: name.startswith("bench-"))
        return [
            price(job, peer.name, interval_ms, results)
            for interval_ms in options.intervals_ms
            for peer in options.peers
        ]

    def _measure(
        self, feed: Feed, job: str, peer: Peer, interval_ms: int, guarantee: str
    ) -> tuple[Result, Output]:
        self._runs += 1
        name = f"bench-{job}-{peer.name}-{self._runs}"
        run = Run(
            job=job,
            application_id=name,
            bootstrap_servers=self._cluster.bootstrap_servers,
            inputs=feed.source.topics,
            output=f"{name}_out",
            folder=self._folder / name,
            commit_interval_ms=interval_ms,
            guarantee=guarantee,
        )
        result, output = measure(self._cluster, peer, run, feed.source.main, self._runs)
        self._console.print(
            f"{job} {peer.name} {guarantee}, a commit every {interval_ms} ms: {result.rate:,.0f} records/s over"
            f" {result.steady.seconds:.1f} s, {result.cpu_us:.2f} µs CPU a record"
        )
        return result, output

    def _compared(self, feed: Feed, job: str, first: Output | None, output: Output) -> Output:
        check_total(job, output, feed.source.expected)
        if first is None:
            return output
        check_equal(self._cluster.bootstrap_servers, first, output)
        self._cluster.delete(output.topic.__eq__)
        return first


def price(job: str, peer: str, interval_ms: int, results: dict[tuple[int, str, str], list[Result]]) -> Price:
    """The price that the runs of a peer show."""
    once, exactly = (results[interval_ms, peer, guarantee] for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE))
    return Price(
        job,
        peer,
        interval_ms,
        at_least_once=median(result.rate for result in once),
        exactly_once=median(result.rate for result in exactly),
        cpu_ratio=median(result.cpu_us for result in exactly) / median(result.cpu_us for result in once),
    )


def table(prices: Sequence[Price]) -> Table:
    """A line for each peer and commit interval."""
    shown = Table("job", "commit ms", "peer", "at least once", "exactly once", "costs", "CPU x at least once")
    for one in prices:
        shown.add_row(
            TITLES[one.job],
            str(one.interval_ms),
            one.peer,
            f"{one.at_least_once:,.0f}/s",
            f"{one.exactly_once:,.0f}/s",
            f"{one.loss:.0%}",
            f"{one.cpu_ratio:.2f}",
        )
    return shown

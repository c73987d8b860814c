"""``make bench-exactly-once`` on a tiny input: the outputs of both guarantees are equal, and both are measured."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks.exactly_once.price import Bench, Options, Price, table
from tests.benchmarks.kafka.cluster import Cluster
from tests.benchmarks.kafka.peers import PEERS
from tests.kafka.server import KafkaServer


@pytest.mark.slow
def test_both_guarantees_write_the_same_and_are_measured(server: KafkaServer, tmp_path: Path):
    options = Options(("wordcount",), (PEERS["pystreams"],), intervals_ms=(100,), repeats=1, records=20_000)
    printed = Console(file=io.StringIO(), width=160)
    # Raises if an output differs from another or from what the inputs add up to.
    (price,) = Bench(Cluster(server.bootstrap_servers, [server.pid]), tmp_path, options, printed).run()
    assert price.at_least_once > 0
    assert price.exactly_once > 0
    printed.print(table([price]))


def test_the_price_is_what_is_lost():
    assert Price("wordcount", "java", 100, at_least_once=200, exactly_once=150, cpu_ratio=1).loss == 0.25

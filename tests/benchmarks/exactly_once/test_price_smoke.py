"""``make bench-exactly-once`` on a tiny input: the outputs of both guarantees are equal, and both are measured."""

from __future__ import annotations

import pytest

from tests.benchmarks.exactly_once.price import Bench, Options, Price, table
from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.session import Session


@pytest.mark.slow
def test_both_guarantees_write_the_same_and_are_measured(session: Session):
    options = Options(("wordcount",), (PEERS["pystreams"],), intervals_ms=(100,), repeats=1, records=20_000)
    # Raises if an output differs from another or from what the inputs add up to.
    (price,) = Bench(session, options).run()
    assert price.at_least_once > 0
    assert price.exactly_once > 0
    session.console.print(table([price]))


def test_the_price_is_what_is_lost():
    assert Price("wordcount", "java", 100, at_least_once=200, exactly_once=150, cpu_ratio=1).loss == 0.25

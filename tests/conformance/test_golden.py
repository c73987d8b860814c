"""Recorded scenarios give what the real Kafka Streams gave, to the byte."""

from __future__ import annotations

import pytest

from tests.conformance import golden
from tests.conformance.compare import difference
from tests.conformance.missing import missing_operators
from tests.conformance.runner import run


@pytest.mark.parametrize("case", list(golden.cases()), ids=lambda case: case.name)
def test_gives_what_kafka_streams_gives(case: golden.Case) -> None:
    lacks = missing_operators(case.scenario)
    if lacks:
        pytest.skip(f"not there yet: {', '.join(lacks)}")
    assert difference(case.result, run(case.scenario)) is None

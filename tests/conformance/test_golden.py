"""Recorded scenarios give what the real Kafka Streams gave, to the byte."""

from __future__ import annotations

import pytest

from tests.conformance import golden
from tests.conformance.compare import difference
from tests.conformance.lost_on_close import lost_on_close
from tests.conformance.runner import run


@pytest.mark.parametrize("case", list(golden.cases()), ids=lambda case: case.name)
def test_gives_what_kafka_streams_gives(case: golden.Case) -> None:
    found = difference(case.result, run(case.scenario))
    assert found is None or lost_on_close(case.scenario, case.result), found

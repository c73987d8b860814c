"""Random scenarios give what the real Kafka Streams gives: others for every commit."""

from __future__ import annotations

import pytest

from tests.conformance.__main__ import main
from tests.examples import TIMES


@pytest.mark.oracle
@pytest.mark.slow
def test_random_scenarios_agree(monkeypatch, capsys):
    count = str(150 * TIMES)
    monkeypatch.setattr(
        "sys.argv", ["conformance", "--fuzz", "--seed", "commit", "--count", count, "--workers", "1"]
    )
    code = main()
    assert code == 0, capsys.readouterr().out

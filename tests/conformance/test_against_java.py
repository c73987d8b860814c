"""Random scenarios give what the real Kafka Streams gives: others for every commit."""

from __future__ import annotations

import pytest

from tests.conformance.__main__ import main


@pytest.mark.oracle
@pytest.mark.slow
def test_random_scenarios_agree(monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["conformance", "--fuzz", "--seed", "commit", "--count", "300", "--workers", "1"]
    )
    code = main()
    assert code == 0, capsys.readouterr().out

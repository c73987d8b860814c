"""``make bench-stopping`` on few keys: the application commits all of them when it is told to stop."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks.stopping import main

pytestmark = pytest.mark.live


def test_an_application_that_stops_commits_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tasks", "2", "--keys", "1001"])
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"  2 tasks, 1001 keys: \d+\.\d s   Stopped, and all is committed: 1,001 records .*", line
    )

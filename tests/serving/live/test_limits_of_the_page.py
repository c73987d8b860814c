"""The limits that the page's scripts have are those of the product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pystreams.serving.live
from pystreams.engine.failures.unmatched import UNMATCHED_MIN
from pystreams.times import AHEAD_MAX_MS

STATIC = Path(pystreams.serving.live.__file__).parent / "static"


@pytest.mark.parametrize(
    "script,name,limit",
    [("topology.js", "MISSED_MIN", UNMATCHED_MIN), ("format.js", "AHEAD_MAX_MS", AHEAD_MAX_MS)],
)
def test_a_limit_is_the_same_in_the_script(script, name, limit):
    text = (STATIC / script).read_text(encoding="utf-8")
    assert re.findall(rf"^const {name} = (\d+);$", text, re.MULTILINE) == [str(limit)]

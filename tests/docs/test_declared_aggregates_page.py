"""The page on aggregations lists all declared aggregates."""

from __future__ import annotations

import re

from pystreams import agg
from tests.docs.manual import DOCS


def test_the_table_of_declared_aggregates_has_each_of_them():
    page = (DOCS / "dsl" / "aggregations.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `agg.")]
    listed = {name for row in rows for name in re.findall(r"agg\.(\w+)\(", row.split("|")[1])}
    assert listed == {name for name in agg.__all__ if name.islower()}

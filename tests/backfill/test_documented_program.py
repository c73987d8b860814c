"""The programs in docs/backfill/reference.md call what there is, with arguments that it takes.

On Spark they run in ``tests/backfill/spark/test_documented_programs.py``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams import App
from pystreams.backfill import DataFrameSource, SparkTable, backfill
from tests.backfill.documented import program

DOC = Path(__file__).resolve().parents[2] / "docs" / "backfill" / "reference.md"


def test_its_names_and_arguments_exist() -> None:
    programs = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    (tree,) = [ast.parse(text) for text in programs if "import" in text]
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            names |= {alias.name: getattr(module, alias.name) for alias in node.names}
    called = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]
    assert {node.func.id for node in called if isinstance(node.func, ast.Name)} >= {
        "backfill",
        "hand_over",
        "emit",
    }
    for node in called:
        assert isinstance(node.func, ast.Name)
        given = {keyword.arg: None for keyword in node.keywords if keyword.arg is not None}
        inspect.signature(names[node.func.id]).bind(*node.args, **given)


def test_tables_are_sources_as_it_shows(tmp_path: Path) -> None:
    frame = pa.table({"customer": ["ann", "ben"], "cents": [3, 4], "at": [1, 2]})
    pq.write_table(frame, tmp_path / "orders.parquet")
    # Tables of Delta are read by Spark alone.
    ours = {'"delta", "/lake/orders"': f'"parquet", "{tmp_path}/orders.parquet"'}
    _, *lines = program("backfill/reference.md", "# Any DataFrame", ours).splitlines()
    app = App("orders")
    app.stream("orders", key=str, value=dict).map_values(lambda order: order["cents"]).to("cents", value=int)
    for number, (line, partitions) in enumerate(zip(lines, ({}, {"orders": 1}), strict=True)):
        names: dict[str, Any] = {"frame": frame, "DataFrameSource": DataFrameSource, "SparkTable": SparkTable}
        exec(line, names)
        result = backfill(
            app, sources=names["sources"], staging=tmp_path / f"staging-{number}", partitions=partitions
        )
        assert sorted(row["value"] for row in result.emitted("cents").to_pylist()) == [3, 4]

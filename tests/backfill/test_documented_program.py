"""The program in docs/backfill/reference.md calls what there is, with arguments that it takes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

DOC = Path(__file__).resolve().parents[2] / "docs" / "backfill" / "reference.md"


def test_its_names_and_arguments_exist() -> None:
    programs = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    (program,) = [ast.parse(text) for text in programs if "import" in text]
    names: dict[str, Any] = {}
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            names |= {alias.name: getattr(module, alias.name) for alias in node.names}
    called = [
        node
        for node in ast.walk(program)
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

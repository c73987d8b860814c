"""Whole messages of errors: which kinds there are, and texts without what differs from run to run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pystreams
from pystreams.errors import StreamsError
from tests.syntax import statements


def normalized(text: str, *, folder: Path, test: Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(folder), "FOLDER").replace(str(test), "THIS_FILE")
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", "HH:MM:SS", text)
    text = re.sub(r"\b1\d{12}\b", "TIME_MS", text)
    text = re.sub(r"(?<=127\.0\.0\.1:)\d{3,}", "PORT", text)
    text = re.sub(r"after \d+ms", "after 0ms", text)
    # On a busy machine librdkafka has more than one attempt behind it.
    text = re.sub(r", \d+ identical error\(s\) suppressed", "", text)
    text = re.sub(r"open for 12\d{3} ms", "open for 12000 ms", text)
    return re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID", text)


def raised(kind: type[StreamsError], call: Callable[[], object]) -> str:
    """The whole message of what a program gets."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    return f"{kind.__name__}: {caught.value}\n"


def kinds_of_errors() -> set[str]:
    """The names of all classes of the package that derive from ``StreamsError``, without those that only others derive
    from: these are never raised themselves."""
    bases: dict[str, set[str]] = {}
    for path in Path(pystreams.__file__).parent.rglob("*.py"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    kinds = {"StreamsError"}
    while more := {name for name, parents in bases.items() if parents & kinds} - kinds:
        kinds |= more
    return kinds

"""Whatever a backfill refuses, docs/backfill/refusals.md says why, and what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pystreams import errors

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *sorted((ROOT / "pystreams" / "backfill").rglob("*.py")),
    ROOT / "pystreams" / "take_over" / "hand_over_record.py",
    ROOT / "pystreams" / "cli" / "spark.py",
    ROOT / "pystreams" / "cli" / "masters.py",
    ROOT / "pystreams" / "cli" / "commands" / "archive.py",
]
DOCUMENTED = " ".join((ROOT / "docs" / "backfill" / "refusals.md").read_text(encoding="utf-8").split())

#: Shorter texts, like "topic", stand everywhere.
_TELLING = 9

#: What only who writes a program meets, and a traceback shows.
OF_PROGRAMS = (
    "resume does not go with overwrite",
    "commit_records cannot be",
    "is not an application",
    "a backfill that is",
    "there is no store",
    "does not read topic",
)


def refusals() -> Iterator[tuple[str, list[str]]]:
    """Of each error that is raised: where, and the fixed texts of what it says has happened."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            kind = getattr(errors, node.func.id, None)
            if isinstance(kind, type) and issubclass(kind, errors.StreamsError):
                texts = [
                    part.value.strip(" ,:")
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                yield (
                    f"{file.relative_to(ROOT)}:{node.lineno}",
                    [text for text in texts if len(text) > _TELLING],
                )


def test_there_are_many() -> None:
    assert len(list(refusals())) > 80


def test_each_is_in_the_tables() -> None:
    missing = [
        f"{where} says {texts}: give it a row"
        for where, texts in refusals()
        if texts
        and not any(text.startswith(OF_PROGRAMS) for text in texts)
        and not any(text[:34] in DOCUMENTED for text in texts)
    ]
    assert missing == []

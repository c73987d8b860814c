"""The recorded scenarios of ``tests/golden`` with the results of the real Kafka Streams.

``found`` below it holds what random scenarios have found, shrunk: each was a difference once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "golden"
FOUND = FOLDER / "found"

#: What fits into so many characters stands in one line.
_LINE_CHARACTERS = 110


class Case(NamedTuple):
    """A scenario and what Kafka Streams made of it."""

    scenario: dict[str, Any]
    result: dict[str, Any]

    @property
    def name(self) -> str:
        name: str = self.scenario["name"]
        return name


def cases(folder: Path = FOLDER) -> Iterator[Case]:
    """All recorded cases, by file."""
    for path in sorted(folder.rglob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            result = case["result"]
            if isinstance(result.get("describe"), list):
                result["describe"] = "\n".join(result["describe"])
            yield Case(case["scenario"], result)


def keep(case: Case, folder: Path = FOUND) -> Path:
    """Write a case to a file of its own, to be run for ever."""
    result = dict(case.result)
    if isinstance(result.get("describe"), str):
        result["describe"] = result["describe"].split("\n")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.name.rpartition('/')[2]}.json"
    whole = {"category": folder.name, "cases": [{"scenario": case.scenario, "result": result}]}
    path.write_text(_laid_out(whole, 0) + "\n", encoding="utf-8")
    return path


def _laid_out(value: Any, indent: int) -> str:
    """Short things in a line, others one part a line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _LINE_CHARACTERS or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_laid_out(of, indent + 1)}" for name, of in value.items()]
    else:
        parts = [_laid_out(of, indent + 1) for of in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    pad = " " * (indent + 1)
    return opening + "\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * indent + closing

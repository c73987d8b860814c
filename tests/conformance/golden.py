"""The recorded scenarios of ``tests/golden`` with the results of the real Kafka Streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "golden"


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
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            result = case["result"]
            if isinstance(result.get("describe"), list):
                result["describe"] = "\n".join(result["describe"])
            yield Case(case["scenario"], result)

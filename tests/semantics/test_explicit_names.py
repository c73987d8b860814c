"""``ensure_explicit_internal_resource_naming`` refuses what Java refuses, and names it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pystreams import TopologyError
from tests.conformance import golden
from tests.conformance.builder import ScenarioBuilder

#: Of recorded scenarios: what Java 4.3.1 says has not been named, by kind.
JAVA = json.loads((Path(__file__).parent / "java" / "unnamed.json").read_text(encoding="utf-8"))

CASES = {case.name: case for case in golden.cases()}


def refused(case: golden.Case) -> dict[str, list[str]]:
    """What is refused, by kind; nothing if the topology is built."""
    builder = ScenarioBuilder({**case.scenario["config"], "explicit_names": True})
    try:
        builder.build(case.scenario["steps"])
    except TopologyError as error:
        told = error.what.partition("generated names: ")[2]
        found = re.findall(r"(store|changelog topic|repartition topic) ([^;]+)", told)
        return {kind: sorted(names.split(", ")) for kind, names in found}
    return {}


@pytest.mark.parametrize("name", JAVA)
def test_what_has_a_generated_name_is_refused_by_name(name: str) -> None:
    assert refused(CASES[name]) == JAVA[name]


def unrefused() -> list[Any]:
    return [
        case
        for case in CASES.values()
        if case.name not in JAVA
        and not case.name.startswith("found/")
        and (case.result.get("error") or {}).get("phase") not in ("config", "build")
    ]


@pytest.mark.parametrize("case", unrefused(), ids=lambda case: case.name)
def test_what_java_builds_is_built(case: golden.Case) -> None:
    assert refused(case) == {}

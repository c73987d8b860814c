"""The page on monitoring names every metric, with the meaning that Prometheus gets, and nothing that is not there."""

from __future__ import annotations

import re

from pystreams.metrics import Sample, names
from pystreams.metrics.catalogue import MEANINGS
from pystreams.metrics.exposed import exposed_name
from tests.docs.manual import DOCS
from tests.unit.serving.test_exposition import LEVELS

PAGE = (DOCS / "how-to" / "monitoring.md").read_text(encoding="utf-8")
NAMES = PAGE.partition("\n## Names\n")[2].partition("\n## ")[0]


def test_the_tables_are_those_of_the_catalogue() -> None:
    shown: dict[tuple[str, str], str] = {}
    for section in NAMES.split("\n### ")[1:]:
        group = re.search(r"^Group `([\w-]+)`", section, flags=re.MULTILINE)
        assert group is not None, section
        rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", section, flags=re.MULTILINE)
        shown |= {(group[1], name): meaning for name, meaning in rows}
    assert shown == MEANINGS


def test_every_name_of_the_code_is_in_the_catalogue() -> None:
    defined = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    known = {name.removesuffix("-avg").removesuffix("-max") for _, name in MEANINGS} | {
        name for _, name in MEANINGS
    }
    assert defined - known == set()


def test_queries_ask_for_metrics_that_there_are() -> None:
    known = {exposed_name(Sample(name, tuple(LEVELS[group].items()), 1)) for group, name in MEANINGS}
    asked = set(re.findall(r"\b(?:kafka_(?:streams|consumer)|pystreams)_\w+", PAGE))
    assert asked - known == {"pystreams_application_"}

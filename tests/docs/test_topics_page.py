"""What the page of topics from Python shows runs, and its tables have all that a log can do."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from pystreams.log import Log
from tests.docs.manual import DOCS
from tests.environment import without

PAGE = (DOCS / "topics-from-python.md").read_text(encoding="utf-8")


def test_the_programs_of_the_page_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "PYSTREAMS_")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": __name__}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert re.search(r"o-1 3$", printed, flags=re.MULTILINE)
    assert re.search(r"^bob +5$", printed, flags=re.MULTILINE)


def test_every_method_is_on_the_page() -> None:
    public = {name for name, _ in inspect.getmembers(Log, callable) if not name.startswith("_")}
    assert {name for name in public if f"log.{name}(" not in PAGE} == set()


def test_everything_that_consume_takes_is_in_its_table() -> None:
    table = PAGE.partition("## Reading")[2]
    assert {name for name in inspect.signature(Log.consume).parameters if f"{name}=" not in table} == {
        "self",
        "topic",
    }

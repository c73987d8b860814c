"""The picture of a task's life has the states and transitions of the code."""

from __future__ import annotations

import re

from pystreams.runtime.tasks.task import TASK_SUCCESSORS
from tests.docs.manual import DOCS

PAGE = (DOCS / "architecture" / "life-of-a-task.md").read_text(encoding="utf-8")


def test_the_picture_has_the_transitions_of_the_code() -> None:
    drawn = set(re.findall(r"^ {4}(\w+) --> (\w+)", PAGE, flags=re.MULTILINE))
    assert drawn == {(old.name, new.name) for old, after in TASK_SUCCESSORS.items() for new in after}

"""What pages tell readers to type works, and prints what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.manual import DOCS
from tests.docs.shell import Shell
from tests.docs.walk import walk

PAGES = (DOCS / "backfill.md",)


@pytest.mark.live
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_step_does_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    with Shell(tmp_path, {}) as shell:
        walk(page, tmp_path, shell)

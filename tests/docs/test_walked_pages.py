"""What pages tell readers to type works, and prints what they show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.manual import DOCS
from tests.docs.shell import Shell
from tests.docs.walk import walk
from tests.kafka.server import free_port

PAGES = (DOCS / "backfill.md", DOCS / "streams.md", *sorted((DOCS / "how-to").glob("*.md")))

#: They only tell; of them no more is checked than that nothing in them asks to be run.
WITHOUT_STEPS = {
    "README.md",
    "alerts.md",
    "broker-assigns.md",
    "metrics-and-java.md",
    "recovering.md",
    "sizing.md",
    "troubleshooting.md",
    "tuning.md",
    "upgrading.md",
}


@pytest.mark.live
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_step_does_what_the_page_shows(page: Path, tmp_path: Path, on_disk: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "$ curl" in text and shutil.which("curl") is None:
        pytest.skip("the page uses curl")
    # The doctor warns of state in memory, where ``tmp_path`` may be. Whatever else is written is written faster there.
    folder = on_disk if "$ pystreams doctor" in text else tmp_path
    with Shell(folder, {}, forking=True) as shell:
        ran = walk(page, folder, shell, {"localhost:8080": f"127.0.0.1:{free_port()}"})
    assert (ran == 0) == (page.name in WITHOUT_STEPS)

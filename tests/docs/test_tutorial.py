"""The tutorial works from its first page to its last one, in one folder, as it stands there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.manual import DOCS
from tests.docs.shell import Shell
from tests.docs.walk import walk
from tests.kafka.server import free_port

PAGES = sorted((DOCS / "tutorial").glob("*.md"))
ON_KAFKA = "08-kafka.md"
ON_SPARK = "10-backfill.md"


class Reader:
    """Somebody who works through the pages in order."""

    def __init__(self, folder: Path, shell: Shell) -> None:
        self._folder = folder
        self._shell = shell
        self._read: set[Path] = set()
        self._http = f"127.0.0.1:{free_port()}"
        self._stuck_at: str | None = None

    def read_to(self, last: Path, kafka: str = "") -> None:
        """Do all that comes up to this page and was not done yet; what needs Kafka or Spark only if it is asked for."""
        for page in PAGES[: PAGES.index(last) + 1]:
            if page not in self._read and (page == last or page.name not in {ON_KAFKA, ON_SPARK}):
                assert self._stuck_at is None, f"nobody gets here: {self._stuck_at} does not work"
                self._stuck_at = page.name
                addresses = {"localhost:8080": self._http} | ({"localhost:9092": kafka} if kafka else {})
                walk(page, self._folder, self._shell, addresses)
                self._stuck_at = None
                self._read.add(page)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("tutorial")
    with Shell(folder, {}, forking=True) as shell:
        yield Reader(folder, shell)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_each_page_works_behind_those_before(
    page: Path, reader: Reader, request: pytest.FixtureRequest
) -> None:
    if page.name == ON_SPARK and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    kafka = request.getfixturevalue("cluster").bootstrap_servers if page.name == ON_KAFKA else ""
    reader.read_to(page, kafka)


def test_the_first_page_of_all_lists_each_page_and_each_leads_to_the_next() -> None:
    contents = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"(tutorial/{page.name})" not in contents] == []
    for page, following in pairwise(PAGES):
        assert f"({following.name})" in page.read_text(encoding="utf-8").splitlines()[-1]


def test_the_words_that_it_counts_are_there() -> None:
    """Within a tenth: who makes it longer says so."""
    told = re.search(r"The pages have ([\d,]+) words", (DOCS / "tutorial.md").read_text(encoding="utf-8"))
    assert told is not None
    prose = [
        re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for page in PAGES
    ]
    words = sum(len(text.split()) for text in prose)
    assert words == pytest.approx(int(told[1].replace(",", "")), rel=0.1)

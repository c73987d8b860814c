"""The site of the documentation is whole: each page is in its navigation once, shows what the page on GitHub shows,
loads nothing from other servers, and can be searched. A broken link stops the build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

import pystreams
import pystreams.testing
from tests.docs.manual import DOCS

ROOT = DOCS.parent

pytestmark = pytest.mark.slow

#: Elements of a page's text that both viewers make of the same Markdown.
COUNTED = frozenset({"h2", "h3", "h4", "img", "li", "pre", "table", "tr"})


class Page(HTMLParser):
    """A page as a browser reads it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.navigated: list[str] = []
        self.anchors: set[str] = set()
        self.elements: Counter[str] = Counter()
        self._in_article = False
        self._in_navigation = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag in {"img", "script", "iframe", "source"}:
            self.loaded.append(values.get("src", ""))
        elif tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(values.get("href", ""))
        elif tag == "a":
            self.links.append(values.get("href", ""))
            if self._in_navigation and "md-nav__link" in values.get("class", ""):
                self.navigated.append(values.get("href", ""))
        elif tag == "article":
            self._in_article = True
        elif tag == "nav" and "md-nav--primary" in values.get("class", ""):
            self._in_navigation = True
        if self._in_article and tag in COUNTED:
            self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._in_article = False


def build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--config-file",
            configuration,
            "--site-dir",
            site,
        ],
        cwd=configuration.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", site)
    assert built.returncode == 0, built.stderr
    return site


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Each page by its path on the site."""
    return {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def place(page: Path) -> str:
    """Where the site has a page of ``docs``."""
    name = page.relative_to(DOCS).with_suffix(".html").as_posix()
    return re.sub(r"README\.html$", "index.html", name)


def test_every_page_is_in_the_navigation_once(pages: dict[str, Page]) -> None:
    # The entry of the page itself leads to itself, once for its sections and once as an entry.
    elsewhere = Counter(target for target in pages["index.html"].navigated if target != "index.html")
    expected = {place(page) for page in DOCS.rglob("*.md")} - {"index.html"}
    assert {name: elsewhere[name] for name in expected} == dict.fromkeys(expected, 1)
    assert "index.html" in pages["cli.html"].navigated


def test_no_page_loads_anything_from_another_server(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) > 60
    loaded = [(name, url) for name, page in pages.items() for url in page.loaded if url]
    assert len(loaded) > len(pages)
    assert [
        (name, url) for name, url in loaded if urlsplit(url).scheme not in {"", "data"} or url[:2] == "//"
    ] == []
    fetched = [
        (sheet.name, url)
        for sheet in site.rglob("*.css")
        for url in re.findall(
            r"(?:@import|url\()\s*['\"]?((?:https?:)?//[^'\")]+)", sheet.read_text(encoding="utf-8")
        )
    ]
    assert fetched == []


def test_pages_with_diagrams_bring_what_draws_them(site: Path, pages: dict[str, Page]) -> None:
    drawn = {place(page) for page in DOCS.rglob("*.md") if "```mermaid" in page.read_text(encoding="utf-8")}
    bringing = {name for name, page in pages.items() if any("mermaid.js" in url for url in page.loaded)}
    assert bringing == drawn
    assert len(drawn) > 10
    assert 'globalThis["mermaid"]' in (site / "assets" / "mermaid.js").read_text(encoding="utf-8")


def test_every_link_and_anchor_leads_somewhere(pages: dict[str, Page], site: Path) -> None:
    broken = []
    for name, page in pages.items():
        for link in (*page.links, *page.loaded):
            url = urlsplit(link)
            if url.scheme:
                continue
            target = Path(os.path.normpath(Path(name).parent / url.path)).as_posix() if url.path else name
            found = pages.get(target)
            if found is None and not (site / target).is_file():
                broken.append((name, link))
            if found is not None and url.fragment and unquote(url.fragment) not in found.anchors:
                broken.append((name, link))
    assert broken == []


def test_pages_show_what_they_show_on_github(pages: dict[str, Page]) -> None:
    """Viewers differ in what they take for a list, a table or code: in indents and in empty lines before them."""
    markdown = MarkdownIt("commonmark").enable("table")
    for source in sorted(DOCS.rglob("*.md")):
        shown = Page(f"<article>{markdown.render(source.read_text(encoding='utf-8'))}</article>").elements
        assert pages[place(source)].elements == shown, source.name


def test_the_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    known = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {place(page) for page in DOCS.rglob("*.md")} - known - {"index.html"} == set()
    assert any("catch_up_wait_max_ms" in entry["text"] for entry in index["docs"])


def test_every_public_name_is_in_the_reference_once(pages: dict[str, Page]) -> None:
    described = Counter(
        anchor for name, page in pages.items() if name.startswith("names/") for anchor in page.anchors
    )
    names = {f"pystreams.{name}" for name in pystreams.__all__}
    names |= {f"pystreams.testing.{name}" for name in pystreams.testing.__all__}
    # It is the same class.
    names -= {"pystreams.TopologyTestDriver"}
    assert {name: described[name] for name in names} == dict.fromkeys(names, 1)
    # Steps that a stream inherits are on the page of streams.
    assert {"pystreams.KStream.join", "pystreams.KStream.process", "pystreams.KStream.filter"} <= set(
        described
    )


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    shutil.copytree(DOCS / "site", tmp_path / "docs" / "site")
    pages = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "tests/README.md")
    for name in (*pages, "apps/a.py", "docker/Dockerfile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# Some text\n", encoding="utf-8")
    # Without the navigation and the public names, which need all pages.
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
    configuration = re.sub(r"docs/site/names\.py, |  omitted_files: warn\n", "", configuration)
    (tmp_path / "mkdocs.yml").write_text(configuration, encoding="utf-8")
    targets = ("missing.md", "#missing", "../README.md#missing", "../apps/missing.py", "/README.md")
    links = "".join(f"[text]({target})\n" for target in (*targets, "../README.md#some-text", "../apps"))
    (tmp_path / "docs" / "README.md").write_text(f"# Page\n\n{links}", encoding="utf-8")
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == len(targets), built.stderr
    # The warning names the page of the site to which the link was led.
    named = [target.removeprefix("../README.md") for target in targets]
    assert [target for target in named if not any(target in warning for warning in warnings)] == []

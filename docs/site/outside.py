"""Files outside of ``docs`` to which its pages lead are pages of the site, too, and links lead there.

A Markdown file stays as it is. Of any other file, and of a folder, the page shows the text. Mermaid, which draws the
diagrams, comes from the package ``mermaidx``.
"""

from __future__ import annotations

import posixpath
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

#: The page of the site by the path from the root of the repository.
PAGES = {
    "README.md": "outside/readme.md",
    "CHANGELOG.md": "outside/changelog.md",
    "CONTRIBUTING.md": "outside/contributing.md",
    "LICENSE": "outside/license.md",
    "apps": "outside/apps.md",
    "docker": "outside/docker.md",
    "tests/README.md": "outside/tests.md",
}

_PATHS = {page: path for path, page in PAGES.items()}
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
_LANGUAGES = {".py": "python", ".yaml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and Mermaid."""
    for path, page in PAGES.items():
        files.append(File.generated(config, page, content=_markdown(ROOT / path)))
    package = find_spec("mermaidx")
    if package is None or package.origin is None:
        raise PluginError("mermaidx is not installed, which brings Mermaid: run `make setup`")
    mermaid = Path(package.origin).parent / "assets" / "mermaid.js"
    files.append(File.generated(config, "assets/mermaid.js", abs_src_path=str(mermaid)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links from and to the pages of :data:`PAGES` to their places on the site."""
    here = page.file.src_uri
    return _LINK.sub(lambda link: f"]({led(here, link[1])}{link[2] or ''})", markdown)


def led(here: str, target: str) -> str:
    """The place on the site of what the page ``here`` links, seen from this page; as it is if both lie in ``docs``."""
    folder = posixpath.dirname(_PATHS.get(here, f"docs/{here}"))
    path = posixpath.normpath(posixpath.join(folder, target))
    if here not in _PATHS and path not in PAGES:
        return target
    place = PAGES.get(path, path.removeprefix("docs/"))
    return posixpath.relpath(place, posixpath.dirname(here) or ".")


def _markdown(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.is_file():
        return f"# {path.name}\n\n{_block(path)}"
    files = sorted(file for file in path.iterdir() if file.is_file())
    files += sorted((path / "kubernetes").glob("*.yaml"))
    parts = (f"## {file.relative_to(path)}\n\n{_block(file)}" for file in files)
    return f"# {path.name}\n\n" + "\n\n".join(parts)


def _block(path: Path) -> str:
    return f"```{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8')}```"

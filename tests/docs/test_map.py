"""The map is true: the pages about the architecture and the docstrings of packages name what exists, and all of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.packages import diagram

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pystreams"
ARCHITECTURE = ROOT / "docs" / "ARCHITECTURE.md"
PAGES = sorted([ARCHITECTURE, *(ROOT / "docs" / "architecture").glob("*.md")])

PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))

#: A name in a docstring, as far as a slash.
_WORD = re.compile(r"``([A-Za-z_][\w./]*?)/?``")


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """What ``definitions`` and ``identifiers`` give. To read and walk all modules takes seconds: it is done once."""
    defined: set[str] = set()
    used: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        module = ast.parse(path.read_text())
        defined |= set(_members(module))
        for node in ast.walk(module):
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.arg):
                used.add(node.arg)
            elif isinstance(node, ast.ClassDef):
                defined |= {node.name} | {f"{node.name}.{name}" for name in _members(node)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                defined.add(node.name)
    return frozenset(defined), frozenset(used)


def definitions() -> frozenset[str]:
    """Every class, function, method and constant of pystreams; methods as ``Class.method``, too."""
    return _names()[0]


def identifiers() -> frozenset[str]:
    """Names of parameters, variables and attributes."""
    return _names()[1]


def _members(node: ast.ClassDef | ast.Module) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            yield member.name
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            yield member.target.id
        elif isinstance(member, ast.Assign):
            yield from (target.id for target in member.targets if isinstance(target, ast.Name))


@cache
def modules(package: Path) -> frozenset[str]:
    """The modules and packages directly in a package."""
    return frozenset(
        {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
        | {path.parent.name for path in package.glob("*/__init__.py")}
    )


def named(page: Path) -> list[str]:
    """What a page names in backticks, and in the boxes of its diagrams."""
    text = page.read_text()
    return re.findall(r"`([^`\n]+)`", text) + re.findall(r"<br/>([\w./]+)", text)


def exists(name: str) -> bool:
    """Whether a name of a page is a module, package, class or function of pystreams, or a file of the tests."""
    name = name.removesuffix("()")
    path = name.rstrip("/")
    if "/" in name or name.endswith(".py"):
        return ((ROOT if path.startswith("tests/") else PACKAGE) / path).exists()
    if (PACKAGE / path).is_dir() or (PACKAGE / f"{path}.py").exists():
        return True
    return name in definitions()


def is_name(text: str) -> bool:
    """Whether it looks like one of ours: a path, a class, a function with (), ``Class.method``."""
    return bool(
        re.fullmatch(r"[a-z_]+/([a-z_]+/)*([a-z_]+(\.py)?)?", text)
        or re.fullmatch(r"[A-Z]\w*[a-z]\w*(\.\w+)?(\(\))?", text)
        or re.fullmatch(r"\w+\(\)", text)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_module_class_and_function_that_a_page_names_exists(page: Path):
    names = {name for name in named(page) if is_name(name)}
    assert len(names) > 10
    assert not {name for name in names if not exists(name)}


def test_every_package_and_module_of_the_first_level_is_in_the_table_of_layers():
    table = {
        name.rstrip("/")
        for line in ARCHITECTURE.read_text().splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    assert table == modules(PACKAGE)


def test_the_diagram_of_packages_is_drawn_from_their_imports():
    assert diagram() in ARCHITECTURE.read_text(), f"put this diagram onto the page:\n{diagram()}"


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_docstring_of_a_package_names_all_of_its_modules(package: Path):
    words = {word.split("/")[0] for word in words_of(package)}
    assert not modules(package) - words, "modules that the docstring leaves out"


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_docstring_of_a_package_says_where_to_begin(package: Path):
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert len(modules(package)) < 2 or re.search(r"\bBegin (with|here)\b", docstring)


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_docstring_of_a_package_names_nothing_that_is_gone(package: Path):
    ours = {word for word in words_of(package) if re.fullmatch(r"[a-z]+_[a-z_]+|[A-Z][a-z]+[A-Z]\w+", word)}
    assert not ours - identifiers() - definitions() - {m for p in PACKAGES for m in modules(p)}


def words_of(package: Path) -> list[str]:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    return _WORD.findall(docstring)

"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.syntax import statements

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pystreams"

MODULE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60

#: A function of so few lines may speak for itself.
SELF_EXPLAINING_LINES = 24

MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted(p for top in ("pystreams", "apps", "docs", "tests") for p in (ROOT / top).rglob("*.py"))
TEXTS = sorted(
    p
    for top in ("pystreams", "apps", "tests", "docs", "docker")
    for p in (ROOT / top).rglob("*")
    if p.suffix in {".py", ".md", ".yaml", ".toml", ""} and p.is_file() and p != Path(__file__)
) + [ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")]

FORBIDDEN = {
    r"(?<![\w.])/(work|root|farm|home)/\w": "the path of somebody's machine",
    r"\.\./shared": "a path outside of the project",
    r"\b(TODO|FIXME|XXX)\b": "unfinished work: do it, or file it where work is filed",
    r"pip install '?pystreams(?!-engine)|(?<![\w-])pystreams\[[a-z]": "another project: ours is pystreams-engine",
    r"except( Exception| BaseException)?:\s*(pass|\.\.\.)\s*$": "an error that vanishes",
}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All of them: expressions hold none."""
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_no_text_names_a_machine_or_leaves_work_undone():
    found = [
        f"{relative(path)}:{number}: {why}: {line.strip()[:80]}"
        for path in TEXTS
        for text in (path.read_text(encoding="utf-8"),)
        for pattern, why in FORBIDDEN.items()
        # What is nowhere in a text is in none of its lines, which are many.
        if re.search(pattern, text, re.MULTILINE)
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == []


def test_modules_stay_within_their_size():
    found = {relative(p): n for p in SOURCES if (n := len(p.read_text().splitlines())) > MODULE_LINES_MAX}
    assert found == {}


class Facts(NamedTuple):
    """What the tests need to know of a module. Syntax trees are not kept: there are two thousand."""

    statements: int
    docstring: str | None
    postponed: bool
    #: The lines of the bodies of all functions that are too long.
    too_long: dict[str, int]
    #: Public classes and functions without a docstring that need one.
    undocumented: list[str]


@cache
def facts() -> dict[Path, Facts]:
    return {path: facts_of(path) for path in SOURCES}


def facts_of(path: Path) -> Facts:
    text = path.read_text()
    tree = ast.parse(text)
    return Facts(
        len(tree.body),
        ast.get_docstring(tree),
        "from __future__ import annotations" in text,
        {
            f"{relative(path)}:{function.lineno} {function.name}": lines
            for function in functions(tree)
            if (lines := body_lines(function)) > FUNCTION_LINES_MAX
        },
        [
            f"{relative(path)}:{node.lineno} {node.name}"
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            and not node.name.startswith("_")
            and ast.get_docstring(node) is None
            and not (isinstance(node, ast.FunctionDef) and body_lines(node) <= SELF_EXPLAINING_LINES)
            and not (isinstance(node, ast.FunctionDef) and is_overload(node))
        ],
    )


def test_functions_stay_within_their_size():
    assert len(facts()) > 1_000
    assert {name: lines for module in facts().values() for name, lines in module.too_long.items()} == {}


def test_every_module_says_what_it_holds():
    found = [
        relative(path)
        for path, module in facts().items()
        if path.name != "conftest.py" and module.statements and module.docstring is None
    ]
    assert found == []


def test_public_classes_and_functions_of_the_package_are_documented():
    assert [name for path in MODULES for name in facts()[path].undocumented] == []


def test_what_users_import_is_documented_to_the_last_method():
    import pystreams

    found = [
        f"{name}.{attribute}"
        for name in pystreams.__all__
        if isinstance(exported := getattr(pystreams, name), type)
        for attribute, value in vars(exported).items()
        if not attribute.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and not inspect.getdoc(getattr(exported, attribute))
        and source_lines(value) > SELF_EXPLAINING_LINES
    ]
    assert found == []


def is_overload(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in function.decorator_list)


def source_lines(function: object) -> int:
    return len(inspect.getsource(function).splitlines())  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [r"\btime\.(time|time_ns|monotonic|monotonic_ns)\(", r"\bdatetime\.now\("])
def test_only_the_clock_reads_the_time(call):
    found = [
        relative(path) for path in MODULES if path.name != "clock.py" and re.search(call, path.read_text())
    ]
    assert found == []


def test_every_module_postpones_annotations():
    found = [
        relative(path)
        for path, module in facts().items()
        if module.statements > 1 and path.name != "__init__.py" and not module.postponed
    ]
    assert found == []


def test_pinned_requirements_are_those_of_the_lock_file():
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    locked = {(package["name"], package.get("version")) for package in lock["package"]}
    pinned = {
        (match[1], match[2])
        for line in (ROOT / "requirements-dev.txt").read_text().splitlines()
        if (match := re.match(r"([\w.-]+)==([^\s;]+)", line))
    }
    assert pinned
    assert pinned <= locked


def test_the_lock_file_names_public_hosts_alone():
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts <= {"pypi.org", "files.pythonhosted.org"}


def test_what_is_served_is_read_by_public_names():
    """The layers below may change their private parts without a look at this one."""
    found = [
        f"{relative(path)}:{node.lineno}: {node.attr}"
        for path in MODULES
        if path.is_relative_to(PACKAGE / "serving")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr)
        if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    ]
    assert found == []


def test_coordinators_of_groups_are_not_asked_through_librdkafka():
    """Its requests to them end the process if a connection is lost at the wrong moment (librdkafka issue 4605)."""
    requests = re.compile(r"(describe|delete)_consumer_groups|(list|alter|delete)_consumer_group_offsets")
    assert [relative(path) for path in MODULES if requests.search(path.read_text(encoding="utf-8"))] == []

"""The manual of the language is true: its examples print what they show, its signatures are those of the code, its
links lead somewhere, and no operator is without a section."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pystreams
import pystreams.testing
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.state.iterators import StoreIterator
from pystreams.state.stores.key_value import KeyValueStore
from pystreams.state.stores.list_store import ListStore
from pystreams.state.stores.session import SessionStore
from pystreams.state.stores.versioned import VersionedStore
from pystreams.state.stores.window import WindowStore
from pystreams.topology.difference import Verdict
from tests.docs.manual import DOCS, PAGES, PRELUDE, Section, examples, expected, run, sections

#: Everything that the manual may name: what users import, and the stores that they get.
CLASSES: dict[str, Any] = {
    **{name: getattr(pystreams, name) for name in pystreams.__all__},
    **{name: getattr(pystreams.testing, name) for name in pystreams.testing.__all__},
    **{
        kind.__name__: kind
        for kind in (
            KeyValueStore,
            ListStore,
            LocalStore,
            SessionStore,
            StoreIterator,
            VersionedStore,
            WindowStore,
        )
    },
}

#: Steps of the language: each method has a section of its own with an example.
OPERATORS = [
    kind
    for kind in CLASSES.values()
    if isinstance(kind, type) and kind.__module__.startswith("pystreams.dsl.")
]

#: The other classes that programs are written with: each public method is at least in a table.
OTHERS = [
    CLASSES[name]
    for name in (
        "App",
        "InputTopic",
        "LocalStore",
        "MockProcessorContext",
        "OutputTopic",
        "Processor",
        "ProcessorContext",
        "ProcessorWrapper",
        "Record",
        "Serde",
        "StoreIterator",
        "Stores",
        "Topology",
        "TopologyTestDriver",
        "ValueTransformer",
    )
]

#: What the language writes into a topology; programs do not.
INTERNAL = {
    "LocalStore.answers",
    "LocalStore.commit_marks",
    "LocalStore.committed_at_once",
    "LocalStore.latest_call",
    "LocalStore.placing",
    "LocalStore.reads_at_once",
    "LocalStore.require_position",
    "MockProcessorContext.punctuate",
    "Topology.add_and_connect",
    "Topology.add_internal_topic",
    "Topology.change_stores",
    "Topology.configured",
    "Topology.check_copartitions",
    "Topology.copartition",
    "Topology.declaring",
    "Topology.insert_global_store",
    "Topology.insert_processor",
    "Topology.insert_sink",
    "Topology.insert_source",
}

#: Data, which the text names where it is used.
FIELDS = re.compile(r".*_ms$|^(max_records|max_bytes|when_full|logged|changelog_config|config|metrics|name)$")

page_names = [page.name for page in PAGES]

#: Whoever comes to one of these can paste what stands there.
LANGUAGE = [page for page in PAGES if page.name == "dsl.md" or page.parent.name == "dsl"]


@cache
def all_sections() -> list[Section]:
    return [section for page in PAGES for section in sections(page)]


def public(kind: type) -> Iterator[str]:
    """The public methods and properties of a class, inherited ones of the package included."""
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if (
            name.startswith("_")
            or inspect.ismemberdescriptor(value)
            or name in getattr(kind, "__members__", ())
        ):
            continue
        if callable(value) or isinstance(value, property | classmethod | staticmethod):
            yield name


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_examples_print_what_they_show(page: Path):
    shown = expected(page)
    for block, told in run(page):
        output = shown.get(block.line)
        assert told == ("" if output is None else output.text), f"{block.where} prints something else"


@pytest.mark.parametrize("page", [page for page in LANGUAGE if examples(page)], ids=lambda page: page.name)
def test_a_page_begins_with_what_its_examples_need(page: Path):
    assert examples(page)[0].text == PRELUDE


def test_no_block_is_left_unread():
    """A block whose fence is misspelt would be neither run nor compared."""
    blocks = [block for section in all_sections() for block in section.blocks]
    kinds = {"python", "python signature", "python no-run", "text", "mermaid", ""}
    assert [block.where for block in blocks if block.info not in kinds] == []
    shown = [output.where for page in PAGES for output in expected(page).values()]
    assert [block.where for block in blocks if block.info == "text" and block.where not in shown] == []


def test_every_operator_has_a_section_with_an_example():
    missing = []
    for kind in OPERATORS:
        for name in public(kind):
            if FIELDS.match(name):
                continue
            of_it = [section for section in all_sections() if f"{kind.__name__}.{name}" in section.names]
            used = re.compile(rf"\b{name}\b")
            if not any(used.search(block.text) for section in of_it for block in section.examples):
                missing.append(f"{kind.__name__}.{name}")
    missing = [name for name in missing if name not in NO_EXAMPLE]
    assert missing == [], "give each a heading with its name in backticks, and an example that uses it"


#: Shown by the examples of other sections.
NO_EXAMPLE = {
    "App.build",
    "App.run",
    "EmitStrategy.on_window_update",
    "EmitStrategy.on_window_close",
    "GlobalKTable.queryable_store_name",
    "KTable.queryable_store_name",
    "TimeWindowedKStream.count",
}


def test_every_public_method_is_in_a_heading_or_a_table():
    named = {name for section in all_sections() for name in (*section.names, *section.table_names)}
    missing = [
        f"{kind.__name__}.{name}"
        for kind in (*OPERATORS, *OTHERS)
        for name in public(kind)
        if f"{kind.__name__}.{name}" not in named
        and not inherited_from_documented(kind, name, named)
        and f"{kind.__name__}.{name}" not in INTERNAL
        and not (kind in OPERATORS and FIELDS.match(name))
    ]
    assert missing == []


def inherited_from_documented(kind: type, name: str, named: set[str]) -> bool:
    return any(f"{base.__name__}.{name}" in named for base in kind.__mro__[1:])


def test_the_manual_names_nothing_that_is_not_there():
    own = [section for section in all_sections() if section.page.name != "coming-from.md"]
    named = {name for section in own for name in (*section.names, *section.table_names)}
    wrong = [
        name
        for name in sorted(named)
        if (kind := CLASSES.get(name.split(".", maxsplit=1)[0])) is not None
        and "." in name
        and not hasattr(kind, name.split(".")[1])
        and name.split(".")[1] not in getattr(kind, "__slots__", ())
    ]
    assert wrong == []


def test_signatures_are_those_of_the_code():
    wrong = []
    for section in all_sections():
        targets = [target for name in section.names if (target := resolved(name)) is not None]
        for block in section.signatures:
            for name, parameters in signatures(block.text):
                candidates = [f for f in targets if f.__name__ == name]
                if not any(fits(parameters, candidate) for candidate in candidates):
                    wrong.append(f"{block.where}: {name}({', '.join(parameters)})")
    assert wrong == []


def test_every_section_of_an_operator_has_its_signature():
    missing = [
        f"{section.page.name}:{section.line}"
        for section in all_sections()
        if any(callable(resolved(name)) and "." in name for name in section.names) and not section.signatures
    ]
    assert missing == []


def resolved(name: str) -> Any:
    """The function of that name; a class is none."""
    first, _, method = name.partition(".")
    kind = CLASSES.get(first)
    value = getattr(kind, method, None) if method else kind
    return value if inspect.isroutine(value) else None


def signatures(text: str) -> Iterator[tuple[str, dict[str, bool]]]:
    """Name, and of each parameter whether it has a default, for each ``def`` of a block."""
    for spelled in re.split(r"^def ", text, flags=re.MULTILINE)[1:]:
        # Types are for people: `() -> A` is none of Python's.
        plain = re.sub(r"\(\) -> (\w+(\[[^]]*\])?)(?=[,)])", r"\1", spelled.strip())
        head = plain.rpartition(" -> ")[0]
        tree = ast.parse(f"def {head}: ...").body[0]
        assert isinstance(tree, ast.FunctionDef)
        arguments = tree.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first_default = len(positional) - len(arguments.defaults)
        found = {a.arg: at >= first_default for at, a in enumerate(positional)}
        found |= {
            a.arg: default is not None
            for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        }
        found |= {f"*{a.arg}": False for a in (arguments.vararg,) if a}
        found |= {f"**{a.arg}": False for a in (arguments.kwarg,) if a}
        yield tree.name, found


#: What only some overloads of a method take, and where a required argument is an optional one of the whole method.
OF_OVERLOADS = {"aggregate", "join", "left_join", "outer_join", "to_stream"}


def fits(written: dict[str, bool], function: Any) -> bool:
    real: dict[str, bool] = {}
    for p in inspect.signature(function).parameters.values():
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.name != "self":
            real[prefix + p.name] = p.default is not p.empty
    if function.__name__ in OF_OVERLOADS:
        return all(name in real for name in written)
    return written == real


def test_what_diff_says_is_explained():
    lines = [line for section in sections(DOCS / "dsl" / "names.md") for line in section.lines]
    told = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    assert {verdict.value for verdict in Verdict} <= set(told)


def links() -> Iterator[tuple[Path, str]]:
    """Those of all documents to each other."""
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:")):
                yield page, target


def test_links_lead_somewhere():
    broken = [f"{page.name}: {target}" for page, target in links() if not leads_somewhere(page, target)]
    assert broken == []


def test_every_page_is_linked_from_another_one():
    linked = {(page.parent / target.partition("#")[0]).resolve() for page, target in links()}
    assert [page.name for page in DOCS.rglob("*.md") if page not in linked] == []


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or anchor in anchors(file)


@cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}

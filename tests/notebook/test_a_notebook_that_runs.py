"""In a real notebook: mistakes name cell and line, a cell run twice on one App is told, an App shows its picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

CELLS = {
    "make": "from pystreams import App, Topology\napp = App('notes')",
    "declare": "lines = app.stream('lines', key=str, value=str)\nlines.group_by_key().count(name='counts')",
    "wrong": "other = App('other')\nother.stream('lines').filter(\n    lambda: True\n)",
    "late": "app.stream('more').to('copy', value=object)\n",
    "app": "app",
    "topology": "app.build()",
    "broken": "app.table('one', name='rows')\napp.table('two', name='rows')\napp",
    "build": "app.build()  # of what is broken",
}


class Notebook:
    def __init__(self) -> None:
        self._names = list(CELLS)
        self._notebook = new_notebook(cells=[new_code_cell(text) for text in CELLS.values()])
        self.client = NotebookClient(self._notebook, allow_errors=True, timeout=60)

    def run(self, name: str) -> str:
        """Run a cell; what it raised, without the traceback."""
        outputs = self._run(name)
        return next((one.evalue for one in outputs if one.output_type == "error"), "")

    def shown(self, name: str) -> dict[str, str]:
        """What a cell shows, by its type."""
        return dict(next(one.data for one in self._run(name) if one.output_type == "execute_result"))

    def _run(self, name: str) -> Any:
        index = self._names.index(name)
        return self.client.execute_cell(self._notebook.cells[index], index).outputs


@pytest.fixture(scope="module")
def kernel() -> Iterator[Notebook]:
    notebook = Notebook()
    with notebook.client.setup_kernel():
        yield notebook


@pytest.fixture
def notebook(kernel: Notebook) -> Notebook:
    assert kernel.run("make") == ""
    return kernel


def number(notebook: Notebook) -> int:
    """That of the cell that was run last."""
    return int(notebook.client.code_cells_executed)


def test_a_mistake_is_reported_with_cell_and_line(notebook: Notebook) -> None:
    told = notebook.run("wrong")
    cell = number(notebook)
    assert f"where: In [{cell}], line 2; <lambda> (In [{cell}], line 3)" in told


def test_a_cell_that_is_run_again_on_the_same_app_is_reported_with_both_runs(notebook: Notebook) -> None:
    assert notebook.run("declare") == ""
    first = number(notebook)
    assert notebook.run("app") == ""
    assert notebook.run("declare").splitlines() == [
        "an earlier run of this cell has added its steps to the same App",
        f"  where: In [{first + 2}], line 1",
        f"  why: the steps were declared in In [{first}], line 1, and would now be there twice",
        "  next: make the App in the same cell, or first run the cell that makes it again",
    ]


def test_a_cell_that_is_run_again_on_a_new_app_is_no_mistake(notebook: Notebook) -> None:
    assert notebook.run("declare") == ""
    assert notebook.run("make") == ""
    assert notebook.run("declare") == ""


def test_an_app_and_its_topology_show_their_picture(notebook: Notebook) -> None:
    notebook.run("declare")
    app, topology = notebook.shown("app"), notebook.shown("topology")
    assert app["text/plain"] == "App('notes', 2 steps)"
    for shown in (app, topology):
        assert shown["image/svg+xml"].startswith("<svg ")
        assert ">counts</text>" in shown["image/svg+xml"]


def test_what_cannot_be_built_is_shown_as_text_and_reported_when_it_is_built(notebook: Notebook) -> None:
    shown = notebook.shown("broken")
    cell = number(notebook)
    assert list(shown) == ["text/plain"]
    told = notebook.run("build")
    assert f"where: In [{cell}], line 2" in told
    assert f"that one was declared in In [{cell}], line 1" in told

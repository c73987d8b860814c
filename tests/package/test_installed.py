"""The wheel works where it is installed with its dependencies alone, far from any checkout."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.distribution import __version__
from tests.docs.shell import Shell
from tests.docs.walk import walk
from tests.package.build_kit import ROOT

#: What the extras ``backfill``, ``pandas``, ``http`` and ``otel`` bring, by the names under which it is imported.
EXTRAS = {
    *("cloudpickle", "loky", "numpy", "pandas", "py4j", "pyarrow", "pyspark"),
    *("anyio", "h11", "prometheus_client", "starlette", "uvicorn"),
    "opentelemetry",
}

#: What is only loaded by those who have one of them.
OF_EXTRAS = (
    "pystreams.backfill.",
    "pystreams.dsl.operators.column_looks",
    "pystreams.dsl.operators.combining",
    "pystreams.dsl.operators.final_columns",
    "pystreams.dsl.operators.partial_",
    "pystreams.dsl.operators.state_columns",
    "pystreams.log.tables",
    "pystreams.serving.access",
    "pystreams.serving.asgi",
    "pystreams.serving.connections",
    "pystreams.serving.guards",
    "pystreams.serving.handshakes",
    "pystreams.serving.head",
    "pystreams.serving.health_pages",
    "pystreams.serving.limits",
    "pystreams.serving.live.",
    "pystreams.serving.pages",
    "pystreams.serving.prometheus",
    "pystreams.serving.refusals",
    "pystreams.serving.server",
    "pystreams.serving.stores.",
    "pystreams.telemetry",
)

IMPORT_ALL = """
import importlib, json, pkgutil, sys
import pystreams

missing, count = {}, 0
for module in pkgutil.walk_packages(pystreams.__path__, "pystreams.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
        count += 1
    except ModuleNotFoundError as error:
        missing[module.name] = error.name.partition(".")[0]
print(json.dumps({"missing": missing, "count": count, "from": pystreams.__path__[0], "version": pystreams.__version__}))
"""


@pytest.fixture
def shell(clean_environment: Path, tmp_path: Path) -> Iterator[Shell]:
    """A terminal in an empty folder, with the environment activated."""
    with Shell(tmp_path, {}) as shell:
        assert shell.run(f". {clean_environment}/bin/activate") == (0, "")
        yield shell


def test_the_command_says_its_version(shell, clean_environment):
    assert shell.run("command -v pystreams") == (0, f"{clean_environment / 'bin' / 'pystreams'}\n")
    code, told = shell.run("pystreams --version")
    assert code == 0, told
    assert told.splitlines()[0] == f"pystreams {__version__}"
    assert "pyspark not installed (backfills)" in told


def test_every_module_that_needs_no_extra_can_be_imported(clean_environment, tmp_path):
    done = subprocess.run(
        [clean_environment / "bin" / "python", "-c", IMPORT_ALL],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert Path(told["from"]).is_relative_to(clean_environment)
    assert told["version"] == __version__
    assert told["count"] > 300
    assert set(told["missing"].values()) <= EXTRAS
    assert [name for name in told["missing"] if not name.startswith(OF_EXTRAS)] == []


def test_the_readmes_word_count_counts(shell, tmp_path):
    walk(ROOT / "README.md", tmp_path, shell, headings=["pystreams", "Word count, by hand"])
    assert (tmp_path / ".pystreams" / "log.db").exists()


def test_a_project_begins_and_runs_without_the_checkout(shell, tmp_path):
    for command in (
        "pystreams init shop",
        "cd shop",
        "make feed",
        "make run ARGS=--until-caught-up",
        "make results | grep -c country",
    ):
        code, told = shell.run(command)
        assert code == 0, told
    assert int(told) > 0
    assert (tmp_path / "shop" / ".pystreams" / "log.db").exists()

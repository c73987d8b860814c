"""The wheel holds the package, its marker for type checkers and its licence, and nothing else; the source
distribution builds the same wheel."""

from __future__ import annotations

import email
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pystreams.distribution import DISTRIBUTION, __version__
from tests.package.build_kit import ROOT, build


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def text(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"pystreams_engine-{__version__}.dist-info/{name}").decode()


def test_all_that_is_kept_in_the_package_is_in_the_wheel(wheel):
    kept = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "pystreams").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    page = {f"pystreams/serving/live/static/page.{kind}" for kind in ("html", "css", "js")}
    monitoring = {
        f"pystreams/cli/commands/monitoring/files/{name}" for name in ("dashboard.json", "alerts.yaml")
    }
    assert {
        "pystreams/py.typed",
        "pystreams/cli/commands/project/Makefile.template",
        *page,
        *monitoring,
    } <= kept
    assert {name for name in names(wheel) if ".dist-info/" not in name} == kept


def test_beside_the_package_there_is_its_description_alone(wheel):
    described = {
        name.partition(".dist-info/")[2] for name in names(wheel) if not name.startswith("pystreams/")
    }
    assert described == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert text(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_name_version_pythons_and_dependencies_are_those_of_the_project(wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = email.message_from_string(text(wheel, "METADATA"))
    assert told["Name"] == DISTRIBUTION == project["name"]
    assert told["Version"] == __version__
    assert told["License-Expression"] == "Apache-2.0"
    assert set(told["Requires-Python"].split(",")) == set(project["requires-python"].split(","))
    assert set(told.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    always = {line for line in told.get_all("Requires-Dist") if "extra ==" not in line}
    assert requirements(always) == requirements(project["dependencies"])


def requirements(lines: Iterable[str]) -> set[tuple[str, SpecifierSet]]:
    return {(told.name, told.specifier) for told in map(Requirement, lines)}


def test_the_source_distribution_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        # The argument ``filter`` is there since Python 3.11.4.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    build(source, tmp_path, "wheel")
    (again,) = tmp_path.glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_source_distribution_can_be_tested_and_read(sdist):
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "README.md",
        "requirements-dev.txt",
        "tests/conftest.py",
        "apps/wordcount.py",
        "docs/cli.md",
    } <= held
    assert not [name for name in held if "__pycache__" in name or name.startswith((".venv", ".git/"))]

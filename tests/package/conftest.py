"""What is built and installed: the wheel and the source distribution of this checkout."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.package.build_kit import ROOT, build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "wheel", "sdist")
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """The only wheel in ``built``."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(built: Path) -> Path:
    """The only source distribution in ``built``."""
    (found,) = built.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def clean_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what it declares that it needs, and nothing else.

    pip installs the wheel. What it needs is linked from the environment of the tests: nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("clean") / "environment"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            wheel,
        ],
        check=True,
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (installed,) = site.glob("pystreams_engine-*.dist-info")
    linked: set[str] = set()
    link_dependencies(Distribution.at(installed), site, linked)
    assert "rocksdict" in linked
    return folder


def link_dependencies(of: Distribution, site: Path, linked: set[str]) -> None:
    """Link into ``site`` what a distribution asks for without extras, and what that asks for in turn."""
    for requirement in wanted(of):
        if requirement.name in linked:
            continue
        linked.add(requirement.name)
        found = distribution(requirement.name)
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (site / top).symlink_to(Path(str(found.locate_file(top))))
        link_dependencies(found, site, linked)


def wanted(of: Distribution) -> Iterator[Requirement]:
    for line in of.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement

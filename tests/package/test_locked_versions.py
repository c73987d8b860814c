"""What is installed is known beforehand: every file of every package, by its hash."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.package.build_kit import ROOT

OWN = "pystreams-engine"


@pytest.fixture(scope="module")
def locked() -> list[dict[str, Any]]:
    """The packages of the lock, other than this one."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    return [package for package in lock["package"] if package["name"] != OWN]


def test_every_file_of_the_lock_has_a_hash(locked):
    files = [
        (package["name"], file)
        for package in locked
        for file in [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
    ]
    assert {package["name"] for package in locked} == {name for name, _ in files}
    assert [file["url"] for _, file in files if not re.fullmatch("sha256:[0-9a-f]{64}", file["hash"])] == []


def test_every_file_of_the_lock_is_pypis(locked):
    assert {package["source"]["registry"] for package in locked} == {"https://pypi.org/simple"}


def test_requirements_are_those_of_the_lock(locked):
    versions = {(package["name"], package["version"]) for package in locked}
    required = re.findall(
        r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements-dev.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(required) > 100
    assert set(required) - versions == set()

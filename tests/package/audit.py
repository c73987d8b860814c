"""Audits all locked versions: ``make audit`` runs it in an environment of its own.

pip-audit looks them up in PyPI's database of known vulnerabilities. Where that does not answer, as behind a mirror of
the index, the files of the lock are compared with those of the index: at least a file that has other content now, or
was withdrawn or deleted, is found. An audit that could look up nothing fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from tests.package.build_kit import ROOT

LOCKED = ROOT / "requirements-dev.txt"
LOCK = ROOT / "uv.lock"

_REQUESTS_AT_ONCE = 8

#: The SHA-256 of each file of one version, by file name.
Hashes: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class IndexFile:
    """A file that the index offers. ``sha256`` is None if the index does not give it."""

    name: str
    sha256: str | None
    withdrawn: bool


@dataclass(frozen=True)
class Findings:
    """Of pip-audit: a line for each vulnerability, and the packages that its database does not know."""

    vulnerabilities: list[str]
    unknown: list[str]


def findings(report: Mapping[str, Any]) -> Findings:
    """What a report of pip-audit (``--format json``) says."""
    found = Findings([], [])
    for package in report["dependencies"]:
        if "skip_reason" in package:
            found.unknown.append(package["name"])
        for one in package.get("vulns", ()):
            fixed = ", ".join(one["fix_versions"]) or "no version yet"
            found.vulnerabilities.append(
                f"{package['name']} {package['version']}: {one['id']}, fixed in {fixed}"
            )
    return found


def locked_files(lock: Mapping[str, Any]) -> dict[str, Hashes]:
    """The hashes of each package that ``uv.lock`` takes from an index, of all versions that it has of it."""
    found: dict[str, dict[str, str]] = {}
    for package in lock["package"]:
        if "registry" in package["source"]:
            files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
            hashes = {_file_name(file["url"]): file["hash"].removeprefix("sha256:") for file in files}
            found.setdefault(package["name"], {}).update(hashes)
    return dict(found)


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def differences(package: str, hashes: Hashes, offered: Iterable[IndexFile]) -> Iterator[str]:
    """A line for each file of the lock that the index does not have, has withdrawn, or has with other content."""
    there = {file.name: file for file in offered}
    for name, sha256 in hashes.items():
        file = there.get(name)
        if file is None:
            yield f"{package}: {name} is not in the index"
        elif file.sha256 not in (None, sha256):
            yield f"{package}: {name} has other content in the index than in the lock"
        elif file.withdrawn:
            yield f"{package}: {name} was withdrawn from the index"


def pip_audit() -> Findings:
    """Run pip-audit. If its database cannot be reached, it knows no package."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off"),
            *("--format", "json", "--requirement", LOCKED),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.stdout:
        return findings(json.loads(ran.stdout))
    print(f"pip-audit gives no report: {ran.stderr.strip()}")
    lines = LOCKED.read_text(encoding="utf-8").splitlines()
    return Findings([], [line.partition("==")[0] for line in lines if "==" in line])


def compare_with_index(files: Mapping[str, Hashes]) -> dict[str, list[str]]:
    """By package, its differences from the index that pip uses; without the packages for which the index does not
    answer."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, NoSuchProjectError, PyPISimple
    from requests import RequestException

    def compare(name: str) -> list[str] | None:
        try:
            offered = index.get_project_page(name).packages
        except NoSuchProjectError:
            offered = []
        except RequestException:
            return None
        shown = [
            IndexFile(file.filename, file.digests.get("sha256"), bool(file.is_yanked)) for file in offered
        ]
        return list(differences(name, files[name], shown))

    with (
        PyPISimple(_index() or PYPI_SIMPLE_ENDPOINT) as index,
        ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads,
    ):
        compared = zip(files, threads.map(compare, files), strict=True)
        return {name: lines for name, lines in compared if lines is not None}


def _index() -> str:
    """The index that pip is configured with; empty if there is none."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    return os.environ.get("PIP_INDEX_URL") or configured.stdout.strip()


def main() -> int:
    found = pip_audit()
    locked = locked_files(tomllib.loads(LOCK.read_text(encoding="utf-8")))
    compared = compare_with_index({name: locked[name] for name in found.unknown if name in locked})
    changed = [line for lines in compared.values() for line in lines]
    for line in (*found.vulnerabilities, *changed):
        print(line)
    not_compared = [name for name in found.unknown if name not in compared]
    print(summary(found, len(compared), len(changed), not_compared))
    return 1 if found.vulnerabilities or changed or not_compared else 0


def summary(found: Findings, compared: int, changed: int, not_compared: Sequence[str]) -> str:
    """What was looked at, and what was not."""
    known = f"Known vulnerabilities: {len(found.vulnerabilities) or 'none'}."
    if not found.unknown:
        return known
    text = (
        f"PyPI's database does not answer for {len(found.unknown)} packages. By their hashes, {compared} of these were"
        f" compared with the index; differences: {changed or 'none'}."
    )
    if found.vulnerabilities:
        text += f" {known}"
    return f"{text} Not looked at: {', '.join(not_compared)}." if not_compared else text


if __name__ == "__main__":
    raise SystemExit(main())

"""Audits all locked versions: ``make audit`` runs it in an environment of its own.

pip-audit looks them up in PyPI's database of known vulnerabilities. Where that cannot be reached, as behind a mirror of
the index, the files of the lock are compared with those of the index instead: a file that has other content now, or a
version that was withdrawn, is found at least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
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
            mended = ", ".join(one["fix_versions"]) or "no version yet"
            found.vulnerabilities.append(
                f"{package['name']} {package['version']}: {one['id']}, mended in {mended}"
            )
    return found


def locked_files(lock: Mapping[str, Any]) -> dict[str, Hashes]:
    """The hashes of each package that ``uv.lock`` takes from an index."""
    found = {}
    for package in lock["package"]:
        if "registry" in package["source"]:
            files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
            found[package["name"]] = {
                _file_name(file["url"]): file["hash"].removeprefix("sha256:") for file in files
            }
    return found


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def differences(package: str, hashes: Hashes, offered: Iterable[IndexFile]) -> Iterator[str]:
    """A line for each file of the lock that the index has with other content, or has withdrawn. Raises
    ``LookupError`` if the index has none of them."""
    there = [file for file in offered if file.name in hashes]
    if not there:
        raise LookupError(f"the index has no file of {package} that is in the lock")
    for file in there:
        if file.sha256 is not None and file.sha256 != hashes[file.name]:
            yield f"{package}: {file.name} has another content in the index than in the lock"
        if file.withdrawn:
            yield f"{package}: {file.name} was withdrawn from the index"


def pip_audit() -> Findings:
    """Run pip-audit. Raises ``SystemExit`` if it gives no report."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off"),
            *("--format", "json", "--requirement", LOCKED),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not ran.stdout:
        raise SystemExit(f"pip-audit failed:\n{ran.stderr}")
    return findings(json.loads(ran.stdout))


def compare_with_index(files: Mapping[str, Hashes]) -> dict[str, list[str]]:
    """By package, its differences from the index that pip uses; without the packages for which the index does not
    answer."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple
    from requests import RequestException

    def compare(name: str) -> list[str] | None:
        try:
            offered = index.get_project_page(name).packages
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
    print(summary(found, len(compared), len(changed)))
    return 1 if found.vulnerabilities or changed else 0


def summary(found: Findings, compared: int, changed: int) -> str:
    """What was looked at, and what was not."""
    known = f"Known vulnerabilities: {len(found.vulnerabilities) or 'none'}."
    if not found.unknown:
        return known
    return (
        f"{known} PyPI's database has no answer for {len(found.unknown)} packages; {compared} of these were compared"
        f" with the index by the hashes of their files. Differences: {changed or 'none'}."
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""An audit reports vulnerabilities, and without their database files that the index has changed or withdrawn."""

from __future__ import annotations

import tomllib

import pytest

from tests.package import audit
from tests.package.audit import LOCK, Findings, IndexFile, differences, findings, locked_files

REPORT = {
    "dependencies": [
        {"name": "sound", "version": "1.0", "vulns": []},
        {"name": "weak", "version": "2.1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.2", "3.0"]}]},
        {"name": "broken", "version": "0.1", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]},
        {"name": "private", "skip_reason": "not found"},
    ]
}

WHEEL = IndexFile("a-1-py3-none-any.whl", "11", False)
HASHES = {"a-1-py3-none-any.whl": "11", "a-1.tar.gz": "22"}


def test_each_vulnerability_names_the_version_that_fixes_it_and_unknown_packages_are_no_sound_ones():
    assert findings(REPORT) == Findings(
        [
            "weak 2.1: PYSEC-1, fixed in 2.2, 3.0",
            "broken 0.1: PYSEC-2, fixed in no version yet",
        ],
        ["private"],
    )


@pytest.mark.parametrize(
    "offered,found",
    [
        pytest.param([WHEEL, IndexFile("a-1.tar.gz", "22", False)], [], id="as locked"),
        pytest.param([WHEEL, IndexFile("a-1.tar.gz", None, False)], [], id="an index without hashes"),
        pytest.param(
            [WHEEL, IndexFile("a-1.tar.gz", "33", False), IndexFile("a-2.tar.gz", "44", False)],
            ["a: a-1.tar.gz has other content in the index than in the lock"],
            id="other content",
        ),
        pytest.param(
            [WHEEL, IndexFile("a-1.tar.gz", "22", True)],
            ["a: a-1.tar.gz was withdrawn from the index"],
            id="withdrawn",
        ),
        pytest.param([WHEEL], ["a: a-1.tar.gz is not in the index"], id="deleted"),
    ],
)
def test_files_of_the_index_are_compared_with_the_lock(offered, found):
    assert list(differences("a", HASHES, offered)) == found


@pytest.mark.parametrize(
    "found,compared,code,line",
    [
        pytest.param(Findings([], []), {}, 0, "Known vulnerabilities: none.", id="all known and sound"),
        pytest.param(Findings(["weak"], []), {}, 1, "Known vulnerabilities: 1.", id="a vulnerability"),
        pytest.param(Findings([], ["numpy"]), {"numpy": []}, 0, "differences: none.", id="as in the index"),
        pytest.param(Findings([], ["numpy"]), {"numpy": ["changed"]}, 1, "differences: 1.", id="changed"),
        pytest.param(Findings([], ["numpy"]), {}, 1, "Not looked at: numpy.", id="the index does not answer"),
        pytest.param(Findings([], ["ours"]), {}, 1, "Not looked at: ours.", id="not in the lock"),
    ],
)
def test_an_audit_fails_for_what_it_finds_and_for_what_it_could_not_look_up(
    monkeypatch, capsys, found, compared, code, line
):
    monkeypatch.setattr(audit, "pip_audit", lambda: found)
    monkeypatch.setattr(audit, "compare_with_index", lambda files: compared)
    assert audit.main() == code
    assert capsys.readouterr().out.endswith(f"{line}\n")


def test_every_package_of_an_index_in_the_lock_has_hashes_of_all_its_versions():
    lock = tomllib.loads(LOCK.read_text(encoding="utf-8"))
    locked = locked_files(lock)
    assert {"msgspec", "confluent-kafka", "rocksdict"} <= locked.keys()
    for package in lock["package"]:
        if "registry" in package["source"]:
            assert any(f"-{package['version']}" in name for name in locked[package["name"]]), package["name"]
    assert all(hashes and all(len(sha256) == 64 for sha256 in hashes.values()) for hashes in locked.values())

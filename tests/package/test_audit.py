"""An audit reports vulnerabilities, and without their database files that the index has changed or withdrawn."""

from __future__ import annotations

import tomllib

import pytest

from tests.package.audit import LOCK, Findings, IndexFile, differences, findings, locked_files, summary

REPORT = {
    "dependencies": [
        {"name": "sound", "version": "1.0", "vulns": []},
        {"name": "weak", "version": "2.1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.2", "3.0"]}]},
        {"name": "broken", "version": "0.1", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]},
        {"name": "private", "skip_reason": "not found"},
    ]
}

HASHES = {"a-1-py3-none-any.whl": "11", "a-1.tar.gz": "22"}


def test_each_vulnerability_names_the_version_that_mends_it_and_unknown_packages_are_no_sound_ones():
    assert findings(REPORT) == Findings(
        [
            "weak 2.1: PYSEC-1, mended in 2.2, 3.0",
            "broken 0.1: PYSEC-2, mended in no version yet",
        ],
        ["private"],
    )


@pytest.mark.parametrize(
    "offered,found",
    [
        pytest.param([IndexFile("a-1.tar.gz", "22", False)], [], id="as locked"),
        pytest.param([IndexFile("a-1.tar.gz", None, False)], [], id="an index without hashes"),
        pytest.param(
            [IndexFile("a-1.tar.gz", "33", False), IndexFile("a-2.tar.gz", "44", False)],
            ["a: a-1.tar.gz has another content in the index than in the lock"],
            id="another content",
        ),
        pytest.param(
            [IndexFile("a-1-py3-none-any.whl", "11", True)],
            ["a: a-1-py3-none-any.whl was withdrawn from the index"],
            id="withdrawn",
        ),
    ],
)
def test_files_of_the_index_are_compared_with_the_lock(offered, found):
    assert list(differences("a", HASHES, offered)) == found


def test_an_index_without_the_locked_files_cannot_be_compared():
    with pytest.raises(LookupError, match="no file of a"):
        list(differences("a", HASHES, [IndexFile("a-2.tar.gz", "22", False)]))


def test_every_package_of_an_index_in_the_lock_has_hashes():
    locked = locked_files(tomllib.loads(LOCK.read_text(encoding="utf-8")))
    assert {"msgspec", "confluent-kafka", "rocksdict"} <= locked.keys()
    assert all(hashes and all(len(sha256) == 64 for sha256 in hashes.values()) for hashes in locked.values())


def test_the_last_line_says_what_was_not_looked_up():
    assert summary(Findings([], []), 0, 0) == "Known vulnerabilities: none."
    assert summary(Findings(["x"], ["a", "b"]), 1, 0) == (
        "Known vulnerabilities: 1. PyPI's database has no answer for 2 packages; 1 of these were compared with the"
        " index by the hashes of their files. Differences: none."
    )

"""Places are found by workers, compared, and shown without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.incremental import go_on
from pystreams.backfill.locations import absolute, is_url, overlapping, same_place, shown
from pystreams.backfill.staging.staging_folder import not_staged
from pystreams.errors import StateError


@pytest.mark.parametrize(
    "place,people_see",
    [
        ("/data/a:b@c", "/data/a:b@c"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://key:secret@bucket/a", "s3://key:***@bucket/a"),
        ("s3://key:se/cr:et@bucket/a", "s3://key:***@bucket/a"),
        ("s3a://bucket/a?secret_key=secret&region=x", "s3a://bucket/a"),
        ("file:///data/a", "file:///data/a"),
        ("hdfs://namenode:8020/a", "hdfs://namenode:8020/a"),
        (
            "cannot open 's3://k:secret@one/a?x=secret', nor s3://k:secret@two",
            "cannot open 's3://k:***@one/a', nor s3://k:***@two",
        ),
    ],
)
def test_people_see_no_secrets(place: str, people_see: str) -> None:
    assert shown(place) == people_see


def test_paths_become_absolute_and_urls_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("archive") == str(tmp_path / "archive")
    for url in ("s3a://bucket//archive", "file:/archive"):
        assert is_url(url)
        assert absolute(url) == url


def test_the_same_place_may_be_written_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert same_place("staging", f"{tmp_path}/other/../staging/")
    assert same_place(f"file://{tmp_path}/staging", "staging")
    assert same_place("s3a://bucket/a/", "s3a://bucket/a")
    assert same_place("s3a://bucket/a", "s3://bucket/a")
    assert not same_place("s3a://bucket/a", "a")


def test_a_place_in_another_is_known_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for one, other in (("a", f"file://{tmp_path}/a/b"), ("s3://bucket/a/b/c", "s3a://bucket/a"), ("a", "a/")):
        assert overlapping(one, other)
        assert overlapping(other, one)
    for one, other in (("a", "ab"), ("a/b", "a/c"), ("s3://bucket/a", "s3://bucket/ab")):
        assert not overlapping(one, other)
        assert not overlapping(other, one)


class Elsewhere:
    """A staging folder with nothing in it."""

    location = "s3a://key:secret@bucket/staging"

    def read_manifest(self) -> None:
        return None


def test_errors_about_staging_show_none_either() -> None:
    staging: Any = Elsewhere()
    nobody: Any = None
    with pytest.raises(StateError) as refused:
        go_on(staging, nobody)
    for error in (refused.value, not_staged(1, staging.location)):
        assert "key:***@bucket" in str(error)
        assert "secret" not in str(error)

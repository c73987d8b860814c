"""E1, inline: caches on or off, the result depends on nothing but cut, commit points and cache budget: not on how
records come in batches, not on an interruption between slices, not on how often it is computed."""

from __future__ import annotations

import pickle
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.application import NamedApplication
from pystreams.backfill.plan.manifest import Manifest, Status
from pystreams.backfill.staging.local import LocalStaging
from pystreams.errors import ProcessingError, StateError, TopologyError
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import PROGRAMS, history, word_count
from tests.examples import chosen

#: None, too few for all keys, enough.
CACHES = [0, 600, 1_000_000]


#: What happens to a cache that is too small comes from all that came before: each program has one.
CASES = chosen(
    product(PROGRAMS, CACHES),
    lambda case: case[1] == 600 or case[0] in ("word count", "self-joined", "punctuated"),
)


@pytest.mark.parametrize(("name", "cache"), CASES)
def test_batches_and_repetition_change_nothing(name: str, cache: int, tmp_path: Path) -> None:
    source = memory(history(name, 5, partitions=3))

    def run(folder: str, batch_rows: int) -> Any:
        program = PROGRAMS[name](statestore_cache_max_bytes=cache)
        backfill = Backfill(program, source, tmp_path / folder, commit_records=16, batch_rows=batch_rows)
        return everything(backfill.run())

    first = run("first", 10_000)
    assert any(first["sinks"].values())
    assert run("one by one", 1) == first
    assert run("seven by seven", 7) == first


def test_caches_and_commit_points_are_seen_downstream(tmp_path: Path) -> None:
    """What the result does depend on stands in the manifest."""
    source = memory(history("word count", 5, partitions=3))

    def updates(folder: str, cache: int, commit_records: int) -> int:
        program = word_count(statestore_cache_max_bytes=cache)
        result = Backfill(program, source, tmp_path / folder, commit_records=commit_records).run()
        assert (result.manifest.cache_max_bytes, result.manifest.commit_records) == (cache, commit_records)
        return sum(len(records) for records in result.sink("word-counts").values())

    assert updates("off", 0, 1_000) == 360
    assert updates("often", 1_000_000, 16) < 360
    assert updates("once", 1_000_000, 1_000) == 12


class StopError(Exception):
    """The driver dies."""


@pytest.mark.parametrize("name", ["word count", "two repartitions", "self-joined"])
def test_a_resumed_run_gives_the_same(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    source = memory(history(name, 6, partitions=2))
    whole = everything(Backfill(PROGRAMS[name](), source, tmp_path / "whole", commit_records=16).run())
    slices = len(whole["slices"])
    computed: list[int] = []
    write = LocalStaging.write_manifest

    def dies_after_each(self: LocalStaging, manifest: Manifest) -> None:
        write(self, manifest)
        if len(manifest.slices) > len(computed):
            computed.append(max(manifest.slices))
            raise StopError

    monkeypatch.setattr(LocalStaging, "write_manifest", dies_after_each)
    for attempt in range(slices):
        with pytest.raises(StopError):
            Backfill(PROGRAMS[name](), source, tmp_path / "pieces", commit_records=16).run(resume=attempt > 0)
    found = Backfill(PROGRAMS[name](), source, tmp_path / "pieces", commit_records=16).run(resume=True)
    assert everything(found) == whole
    assert computed == list(range(slices))
    assert found.manifest.status is Status.COMPUTED


def test_a_task_that_died_leaves_nothing_behind(tmp_path: Path) -> None:
    source = memory(history("word count", 6, partitions=2))
    fails = [True]

    def split(line: str) -> list[str]:
        if fails and "w7" in line:
            fails.clear()
            raise RuntimeError("once")
        return line.split()

    def program() -> Any:
        from pystreams import App

        app = App("wc")
        words = app.stream("lines", value=str).flat_map_values(split).group_by(lambda word: word)
        words.count(name="counts").to_stream().to("word-counts")
        return app

    with pytest.raises(ProcessingError, match="once"):
        Backfill(program(), source, tmp_path / "tried").run()
    again = Backfill(program(), source, tmp_path / "tried").run(resume=True)
    assert everything(again) == everything(Backfill(word_count(), source, tmp_path / "whole").run())
    assert not list((tmp_path / "tried").glob("pystreams-backfill-*"))


def test_a_staged_backfill_is_not_overwritten(tmp_path: Path) -> None:
    source = memory(history("word count", 6, partitions=2))
    Backfill(word_count(), source, tmp_path / "staging").run()
    with pytest.raises(StateError, match="holds a backfill already"):
        Backfill(word_count(), source, tmp_path / "staging").run()


def test_what_was_removed_is_missed(tmp_path: Path) -> None:
    source = memory(history("word count", 6, partitions=2))
    left = Backfill(word_count(), source, tmp_path / "staging").run()
    shutil.rmtree(tmp_path / "staging" / left.manifest.folders[0])
    with pytest.raises(StateError, match="the result of slice 0 of the backfill cannot be found"):
        Backfill(word_count(), source, tmp_path / "staging").run(resume=True)


def test_another_application_does_not_go_on_with_it(tmp_path: Path) -> None:
    Backfill(word_count(), memory(history("word count", 6, 2)), tmp_path / "staging").run()
    other = Backfill(PROGRAMS["punctuated"](), memory(history("punctuated", 6, 2)), tmp_path / "staging")
    with pytest.raises(TopologyError, match="was wc, now it is ticks"):
        other.run(resume=True)


def test_an_application_by_name_travels_as_bytes(tmp_path: Path) -> None:
    source = memory(history("word count", 6, partitions=2))
    named = pickle.loads(
        pickle.dumps(NamedApplication("tests.backfill.named:app", {"commit_interval_ms": 5}))
    )
    found = Backfill(named, source, tmp_path / "named").run()
    assert everything(found) == everything(Backfill(word_count(), source, tmp_path / "local").run())

"""A backfill goes on from an earlier one as the live application would go on from its hand-over."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.api import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.plan.manifest import Status
from pystreams.backfill.sources import EmbeddedSource
from pystreams.errors import OffsetOutOfRangeError, StateError, TopicError, TopologyError
from pystreams.ids import TopicPartition
from tests.backfill.kit import History, everything, memory
from tests.backfill.live import SETTINGS, append, create, left_on, random_cut, split, with_sinks_before
from tests.backfill.programs import PROGRAMS, history, word_count
from tests.examples import chosen
from tests.live.support import Log, run_to_the_end

NewLog = Callable[[str], Log]
OUTPUTS = ["word-counts", "sums", "regions", "totals", "out", "totals-out"]


def run(name: str, past: History, staging: Path, **given: Any) -> BackfillResult:
    program = PROGRAMS[name](statestore_cache_max_bytes=0, window_changelog_retention_ms=-1)
    outputs = dict.fromkeys(OUTPUTS, max(map(len, past.values())))
    return backfill(program, sources=memory(past, outputs), staging=staging, commit_records=16, **given)


def values(result: BackfillResult, store: str) -> dict[int, list[tuple[bytes, bytes | None]]]:
    """A store without the times of its entries."""
    return {p: [(entry.key, entry.value) for entry in of] for p, of in result.changelog(store).items()}


def ends(result: BackfillResult) -> dict[TopicPartition, int]:
    return {partition: committed.offset for partition, committed in result.offsets().items()}


CASES = chosen(
    [
        (*case, seed)
        for seed in range(2)
        for case in (
            ("word count", 1),
            ("windowed sum", 3),
            ("two repartitions", 1),
            ("punctuated", 3),
            ("joined versions", 3),
            ("joined globally", 3),
        )
    ],
    lambda case: case[2] == 0 or case[0] == "windowed sum",
)


@pytest.mark.live
@pytest.mark.parametrize(("name", "partitions", "seed"), CASES)
def test_the_second_run_equals_live_behind_the_first(
    name: str, partitions: int, seed: int, new_log: NewLog, tmp_path: Path
) -> None:
    past = history(name, seed, partitions)
    at = random_cut(past, random.Random(seed))
    first = run(name, past, tmp_path / "first", until=at)
    second = run(name, past, tmp_path / "second", previous=tmp_path / "first")
    assert second.manifest.previous_id == first.manifest.backfill_id

    live, handed = new_log("live"), new_log("handed")
    app = {log: PROGRAMS[name](**SETTINGS, state_dir=log.path / "state", window_changelog_retention_ms=-1)
           for log in (live, handed)}  # fmt: skip
    for log in (live, handed):
        create(log, past, [topic for topic in OUTPUTS if topic not in past])
        append(log, split(past, at)[0])
    from_log = EmbeddedSource(str(live.path / "log.db"))
    hand_over(
        backfill(app[live], sources=from_log, staging=tmp_path / "third", commit_records=16), live.broker
    )
    append(live, split(past, at)[1])
    run_to_the_end(live, app[live])
    append(handed, split(past, at)[1])
    hand_over(second, handed.broker)

    sinks = sorted({partition.topic for partition in [*first.written(), *second.written()]})
    expected = with_sinks_before(first, left_on(live, app[live], sinks))
    found = left_on(handed, app[handed], [])
    assert found.changelogs == expected.changelogs
    assert found.offsets == expected.offsets
    for partition, records in expected.sinks.items():
        emitted = [result.sink(partition.topic).get(partition.partition, []) for result in (first, second)]
        assert emitted[0] + emitted[1] == records


@pytest.mark.parametrize("name", ["word count", "two repartitions"])
def test_confluent_tables_equal_those_of_one_backfill_over_everything(name: str, tmp_path: Path) -> None:
    past = history(name, 4, 3)
    at = random_cut(past, random.Random(4))
    at_once = run(name, past, tmp_path / "all")
    run(name, past, tmp_path / "first", until=at)
    second = run(name, past, tmp_path / "second", previous=tmp_path / "first")
    for store in at_once.stores():
        assert values(second, store) == values(at_once, store)
    assert ends(second) == ends(at_once)


def test_a_subtopology_that_is_visited_twice_goes_on_from_its_last_visit(tmp_path: Path) -> None:
    past = history("self-joined", 6, 2)
    run("self-joined", past, tmp_path / "first", until=random_cut(past, random.Random(6)))
    second = run("self-joined", past, tmp_path / "second", previous=tmp_path / "first")
    at_once = run("self-joined", past, tmp_path / "all")
    assert values(second, "totals") == values(at_once, "totals")


def test_where_nothing_is_new_nothing_changes(tmp_path: Path) -> None:
    past = history("windowed sum", 4, 2)
    first = run("windowed sum", past, tmp_path / "first")
    second = run("windowed sum", past, tmp_path / "second", previous=tmp_path / "first")
    assert second.offsets() == first.offsets()
    assert second.written() == {}
    for store in first.stores():
        assert second.changelog(store) == first.changelog(store)
    assert [one.records for one in second.manifest.slices.values()] == [0] * len(second.plan.slices)


def test_a_killed_one_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = history("two repartitions", 2, 2)
    run("two repartitions", past, tmp_path / "first", until=random_cut(past, random.Random(2)))
    whole = run("two repartitions", past, tmp_path / "whole", previous=tmp_path / "first")
    given = {"previous": tmp_path / "first"}
    original, calls = type(whole.executor).compute, 0

    def killed(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(whole.executor), "compute", killed)
        with pytest.raises(KeyboardInterrupt):
            run("two repartitions", past, tmp_path / "second", **given)
    with pytest.raises(StateError, match="continues a different earlier backfill"):
        run("two repartitions", past, tmp_path / "second", resume=True)
    resumed = run("two repartitions", past, tmp_path / "second", resume=True, **given)
    assert everything(resumed) == everything(whole)


def test_a_folder_without_a_backfill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no earlier backfill"):
        run("word count", history("word count", 1, 1), tmp_path / "second", previous=tmp_path / "first")


def test_one_that_was_not_computed_to_its_end_is_refused(tmp_path: Path) -> None:
    past = history("word count", 1, 1)
    whole = run("word count", past, tmp_path / "first")
    whole.staging.write_manifest(replace(whole.manifest, status=Status.CUT))
    with pytest.raises(StateError, match="not computed to its end"):
        run("word count", past, tmp_path / "second", previous=tmp_path / "first")


def test_another_applications_is_refused_with_the_first_difference(tmp_path: Path) -> None:
    run("punctuated", history("punctuated", 1, 1), tmp_path / "first")
    with pytest.raises(TopologyError, match="the application was ticks, now it is wc"):
        run("word count", history("word count", 1, 1), tmp_path / "second", previous=tmp_path / "first")


def test_records_that_are_gone_in_between_are_refused(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    past = history("word count", 1, 1)
    create(log, past, ["word-counts"])
    append(log, past)
    lines = TopicPartition("lines", 0)
    source = EmbeddedSource(str(log.path / "log.db"))
    backfill(word_count(), sources=source, staging=tmp_path / "first", until={lines: 50})
    log.admin.delete_records({lines: 60}).wait()
    with pytest.raises(
        OffsetOutOfRangeError, match="it read up to offset 50, but the first offset in the source is 60"
    ):
        backfill(word_count(), sources=source, staging=tmp_path / "second", previous=tmp_path / "first")


def test_who_goes_on_from_made_up_offsets_has_made_up_ones(new_log: NewLog, tmp_path: Path) -> None:
    """Whatever the source of what came since knows: nobody can tell where the live application would have to go on."""
    past = history("word count", 1, 1)
    first = run("word count", past, tmp_path / "first", until={TopicPartition("lines", 0): 50})
    first.staging.write_manifest(replace(first.manifest, approximate=True))
    second = run("word count", past, tmp_path / "second", previous=tmp_path / "first")
    third = run("word count", past, tmp_path / "third", previous=tmp_path / "second")
    log = new_log("log")
    create(log, past, ["word-counts"])
    append(log, past)
    for later in (second, third):
        assert later.manifest.approximate
        with pytest.raises(
            StateError, match=r"this backfill, or of backfill .*, which it continues, have no offsets"
        ):
            hand_over(later, log.broker)


def test_another_log_whose_offsets_fit_is_not_gone_on_with(tmp_path: Path) -> None:
    run("word count", history("word count", 1, 1), tmp_path / "first", until={TopicPartition("lines", 0): 50})
    with pytest.raises(TopicError, match="topic lines is not the one that the earlier backfill has read"):
        run("word count", history("word count", 2, 1), tmp_path / "second", previous=tmp_path / "first")

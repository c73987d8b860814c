"""A snapshot is refused, with the reason, unless it belongs to this application, its log, and what the log holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pystreams.clock import ManualClock
from pystreams.dsl.builder import build_topology
from pystreams.errors import StateCorruptedError
from pystreams.runtime.snapshots.fitting import Fitting
from pystreams.state.snapshots.manifest import Manifest
from tests.unit.runtime.snapshots.snapshots_kit import HOUR_MS, TASK, Answers, counting


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000 * HOUR_MS)


def fitting(
    answers: Any, clock: ManualClock, *, app: Any = None, origin: str = "log", beginning: str | None = "b"
) -> Fitting:
    app = app or counting()
    return Fitting(build_topology(app, app.config), answers, clock, lambda: origin, beginning)


def taken(answers: Answers, clock: ManualClock, offset: int = 500) -> Manifest:
    one = fitting(answers, clock)
    return Manifest(
        "shop", "0_0", "one", clock.now_ms(), one.origin, "b", one.contents(TASK, {"counts": offset}), {}
    )


def refusal(one: Fitting, manifest: Manifest) -> str:
    with pytest.raises(StateCorruptedError) as raised:
        one.usable(TASK, manifest)
    assert raised.value.what == "a snapshot does not fit"
    assert raised.value.where == f"task {manifest.task}, {manifest.name}"
    return raised.value.why


def test_one_that_fits_is_used_from_its_offsets_on(answers: Answers, clock: ManualClock) -> None:
    for offset in (0, 500, 1_000):
        assert fitting(answers, clock).usable(TASK, taken(answers, clock, offset)) == {"counts": offset}


def test_it_lies_within_its_changelog(answers: Answers, clock: ManualClock) -> None:
    manifest = taken(answers, clock)
    answers.end = 499
    why = refusal(fitting(answers, clock), manifest)
    assert (
        why
        == "store counts is as of offset 500 of shop-counts-changelog-0, which holds offsets 0 to 499 (exclusive)"
    )
    answers.beginning, answers.end = 501, 1_000
    assert "which holds offsets 501 to 1000" in refusal(fitting(answers, clock), manifest)


def test_its_changelog_is_the_same_topic(answers: Answers, clock: ManualClock) -> None:
    manifest = taken(answers, clock)
    answers.id = "id-2"
    why = refusal(fitting(answers, clock), manifest)
    assert why == "store counts follows another topic than shop-counts-changelog now"


def test_a_client_takes_the_id_that_the_topic_had_when_it_began_with_it(
    answers: Answers, clock: ManualClock
) -> None:
    one = fitting(answers, clock)
    one.contents(TASK, {"counts": 1})
    answers.id = "id-2"
    assert one.contents(TASK, {"counts": 1})["counts"].topic_id == "id-1"


def test_it_follows_the_same_log_and_hand_over(answers: Answers, clock: ManualClock) -> None:
    why = refusal(fitting(answers, clock, origin="log attempt"), taken(answers, clock))
    assert why == "it follows log, not log attempt: another log, or it is from before a hand-over"


def test_it_is_not_from_before_a_reset(answers: Answers, clock: ManualClock) -> None:
    why = refusal(fitting(answers, clock, beginning="c"), taken(answers, clock))
    assert why == "it is from before the application was reset"


def test_its_stores_have_the_form_that_they_have_in_the_topology(
    answers: Answers, clock: ManualClock
) -> None:
    manifest = taken(answers, clock)
    content = manifest.stores["counts"]
    changed = msgspec.structs.replace(content, schema={**content.schema, "kind": "window"})
    manifest = msgspec.structs.replace(manifest, stores={"counts": changed})
    assert refusal(fitting(answers, clock), manifest) == "store counts has another form in the topology now"


def test_one_of_another_task_is_refused(answers: Answers, clock: ManualClock) -> None:
    manifest = msgspec.structs.replace(taken(answers, clock), task="0_1")
    assert refusal(fitting(answers, clock), manifest) == "it is one of shop, task 0_1"


def test_stores_that_have_left_the_topology_are_left_out(answers: Answers, clock: ManualClock) -> None:
    manifest = taken(answers, clock)
    content = manifest.stores["counts"]
    with_another = msgspec.structs.replace(manifest, stores={"counts": content, "gone": content})
    assert fitting(answers, clock).usable(TASK, with_another) == {"counts": 500}
    without = msgspec.structs.replace(manifest, stores={"gone": content})
    assert refusal(fitting(answers, clock), without) == "the task has none of its stores any more"


def test_stores_in_memory_are_in_no_snapshot(answers: Answers, clock: ManualClock) -> None:
    one = fitting(answers, clock, app=counting(persistent=False))
    assert one.stores(TASK) == {}


def test_it_is_not_older_than_the_changelog_keeps_deletions(answers: Answers, clock: ManualClock) -> None:
    manifest = taken(answers, clock)
    clock.advance_ms(24 * HOUR_MS)
    assert fitting(answers, clock).usable(TASK, manifest)
    clock.advance_ms(HOUR_MS)
    assert refusal(fitting(answers, clock), manifest) == (
        "it is 25.0 h old, and the topic of store counts keeps deletions for 24.0 h (delete.retention.ms)"
    )
    answers.config = {"cleanup.policy": "compact", "delete.retention.ms": str(26 * HOUR_MS)}
    assert fitting(answers, clock).usable(TASK, manifest)
    answers.config = {"cleanup.policy": "delete"}
    clock.advance_ms(100 * HOUR_MS)
    assert fitting(answers, clock).usable(TASK, manifest)

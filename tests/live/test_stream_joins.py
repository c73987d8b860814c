"""Joins of streams give the same over partitions with a stop in the middle as without one, whatever state was lost."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams import JoinWindows
from pystreams.app import App
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.serde.join_side import SideValue, WaitingKey
from tests.live.support import Log, Read, caught_up, eventually, run_to_the_end

PARTITIONS = 3
RECORDS, HALF = 500, 250
TOPICS = ("inner", "left-outer", "outer", "self")
WINDOWS = JoinWindows.of(40, grace=10).after(25)
SETTINGS = {"window_changelog_retention_ms": -1, "num_stream_threads": 2}


def joining(log: Log, *, persistent: bool, look: Callable[[int], object] = str) -> App:
    """``look`` sees each result of the outer join that has a left value."""
    app = log.app("joining", **SETTINGS)
    left = app.stream("left", key=str, value=int)
    right = app.stream("right", key=str, value=int)
    stores: dict[str, Any] = {"windows": WINDOWS, "value": str, "persistent": persistent}
    left.join(right, pair, name="inner", **stores).to("inner")
    left.left_join(right, pair, **stores).to("left-outer")
    met = left.outer_join(right, pair, name="outer", **stores)
    met.peek(lambda value: None if value.startswith("None") else look(int(value.partition("+")[0]))).to(
        "outer"
    )
    left.left_join(left, pair, **stores).to("self")
    return app


def pair(one: int | None, two: int | None) -> str:
    return f"{one}+{two}"


def records(seed: int) -> list[tuple[str, tuple[str, int | None, int]]]:
    """(topic, (key, value, timestamp)): out of order, with gaps in which windows close, some values null. None of the
    second half is earlier than one of the first: so it is merged the same whether it is there from the start or not."""
    chance = random.Random(seed)
    time, latest, made = 1_000, 0, []
    for number in range(RECORDS):
        if number == HALF:
            latest = max(timestamp for _, (_, _, timestamp) in made) + 1
        time += chance.choice((0, 1, 3, 60)) if number % 10 == 0 else chance.choice((0, 1, 2))
        value = None if chance.random() < 0.05 else number
        timestamp = max(latest, time - chance.choice((0, 0, 0, 5, 30, 90)))
        made.append((chance.choice(("left", "right")), (f"k{chance.randrange(12)}", value, timestamp)))
    return made


def write(log: Log, made: list[tuple[str, tuple[str, int | None, int]]]) -> None:
    for topic in ("left", "right"):
        log.write(topic, [record for of, record in made if of == topic])


def outcome(log: Log) -> dict[str, Any]:
    """Outputs, and what operators and inputs have come to."""
    outputs: dict[str, list[Read]] = {topic: log.read(topic, value=str) for topic in TOPICS}
    offsets = {
        str(partition): (at.offset, OffsetMetadata.decode(at.metadata))
        for partition, at in log.committed("joining").items()
    }
    return {**outputs, "offsets": offsets}


def run(path: Path, parts: list[slice], *, persistent: bool, lost: bool = False) -> dict[str, Any]:
    """Each part of the records is processed before the next one is there; with a stop in between, and maybe a loss."""
    made = records(seed=11)
    path.mkdir()
    with closing(Log(path)) as log:
        log.create("left", "right", *TOPICS, partitions=PARTITIONS)
        for part in parts:
            write(log, made[part])
            run_to_the_end(log, joining(log, persistent=persistent))
            if lost:
                shutil.rmtree(path / "state")
        return outcome(log)


@pytest.fixture(scope="module", params=[True, False], ids=["on disk", "in memory"])
def persistent(request: pytest.FixtureRequest) -> bool:
    """Stores in memory forget to the millisecond, those on disk by the minute: their results differ."""
    kind: bool = request.param
    return kind


@pytest.fixture(scope="module")
def undisturbed(persistent: bool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("undisturbed") / "log", [slice(RECORDS)], persistent=persistent)


@pytest.mark.parametrize("lost", [False, True], ids=["state kept", "state lost"])
def test_a_stop_in_the_middle_changes_nothing(
    persistent: bool, lost: bool, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    parts = [slice(HALF), slice(HALF, RECORDS)]
    found = run(tmp_path / "log", parts, persistent=persistent, lost=lost)
    assert found == undisturbed
    for topic in TOPICS:
        assert any("None" in record.value for record in found[topic]) is (topic != "inner"), topic


def test_a_failure_in_the_middle_changes_nothing(
    persistent: bool, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.mkdir()
    failed: list[int] = []

    def fail_once(number: int) -> None:
        if number > HALF and not failed:
            failed.append(number)
            raise ValueError("a hiccup")

    with closing(Log(path)) as log:
        log.create("left", "right", *TOPICS, partitions=PARTITIONS)
        write(log, records(seed=11))
        streams = log.start(joining(log, persistent=persistent, look=fail_once))
        eventually(lambda: streams.finished, "the end")
        assert "a hiccup" in str(streams.failure)
        assert streams.close(30_000)
        run_to_the_end(log, joining(log, persistent=persistent, look=fail_once))
        assert failed
        assert outcome(log) == undisturbed


def test_its_stores_can_be_read_while_it_runs(log: Log) -> None:
    log.create("left", "right", *TOPICS)
    log.write("left", [("a", 1, 100), ("a", 2, 100), ("b", 3, 110)])
    log.write("right", [("b", 4, 112)])
    streams = log.start(joining(log, persistent=True))
    caught_up(streams)
    kept = streams.store("outer-outer-this-join-store")
    assert kept.fetch("a", 0, 200) == [(100, 1), (100, 2)]
    assert [value for _, value in streams.store("inner-other-join-store").all()] == [4]
    waiting = streams.store("outer-outer-shared-join-store").all()
    assert waiting == [(WaitingKey(100, True, "a"), SideValue(True, value)) for value in (1, 2)]
    assert streams.store("outer-outer-shared-join-store").get(WaitingKey(110, True, "b")) is None


def test_changelogs_are_set_up_as_java_does(log: Log) -> None:
    log.create("left", "right", *TOPICS)
    app = log.app("joining")
    left, right = (app.stream(topic, key=str, value=int) for topic in ("left", "right"))
    settings = {"segment.bytes": "1000000", "cleanup.policy": "compact"}
    joined = left.outer_join(right, pair, windows=WINDOWS, name="met", changelog_config=settings)
    joined.to("outer", value=str)
    run_to_the_end(log, app)
    topics = [f"joining-met-outer-{part}-join-store-changelog" for part in ("this", "other", "shared")]
    this, other, shared = (log.admin.describe_topics([topic])[topic].config for topic in topics)
    for config in (this, other):
        # Every record has a key of its own: there is nothing to compact, whatever the user asked for.
        assert config["cleanup.policy"] == "delete"
        assert int(config["retention.ms"]) == WINDOWS.retention_ms + 24 * 3_600_000
    assert shared["cleanup.policy"] == "compact"
    assert all(config["segment.bytes"] == "1000000" for config in (this, other, shared))

"""An application that has done its work is found equal to its history, whatever the kinds of its stores."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pystreams import Suppressed, TimeWindows
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource
from tests.backfill.kit import Backfill, lines
from tests.backfill.live import append, create, random_cut, split
from tests.backfill.programs import history
from tests.backfill.verification.verification_kit import OUTPUTS, NewLog, program, ran, verified
from tests.examples import chosen
from tests.live.support import Log, run_to_the_end

pytestmark = pytest.mark.live


STORES = [
    ("word count", 3, {"counts"}),
    ("windowed sum", 3, {"names-STATE-STORE-0000000000", "by-window"}),
    ("two repartitions", 2, {"last", "by-region"}),
    ("punctuated", 3, {"totals"}),
    (
        "joined streams",
        2,
        {"met-outer-this-join-store", "met-outer-other-join-store", "met-outer-shared-join-store"},
    ),
    ("joined versions", 3, {"names-by-time", "KSTREAM-LEFTJOIN-0000000003-Buffer"}),
    ("joined globally", 2, {"totals"}),
    ("declared aggregates", 2, {"rests", "sessions"}),
    ("self-joined", 2, {"totals"}),
]


CASES = chosen(
    [(*case, cache_bytes) for cache_bytes in (0, 1_000_000) for case in STORES],
    lambda case: case[3] == 0 or case[0] in ("word count", "windowed sum"),
)


@pytest.mark.parametrize(("name", "partitions", "compared", "cache_bytes"), CASES)
def test_all_kinds_of_stores_are_equal(
    name: str, partitions: int, compared: set[str], cache_bytes: int, new_log: NewLog
) -> None:
    log = new_log("log")
    app = ran(log, name, partitions, statestore_cache_max_bytes=cache_bytes)
    found = verified(log, app)
    assert found.equal, found
    assert found.atomic
    assert {store for store, one in found.stores.items() if one.counts.equal} == compared
    ends = log.admin.end_offsets(list(found.offsets))
    assert found.offsets == ends


def test_what_is_held_back_is_equal(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, {"in": [[], []]}, ["closed"])
    app = log.app("held", statestore_cache_max_bytes=0, window_changelog_retention_ms=-1)
    counts = (
        app.stream("in", key=str, value=str)
        .group_by(lambda value: value, key=str)
        .windowed_by(TimeWindows.tumbling(100, grace=50))
        .count(name="c")
    )
    counts.suppress(Suppressed.until_window_closes(), step="final").to_stream().to("closed")
    log.write("in", [(f"k{n % 5}", f"v{n % 3}", 10 * n) for n in range(100)], value=str)
    run_to_the_end(log, app)
    found = verified(log, app)
    assert found.equal, found
    assert found.stores["final-store"].counts.equal


def test_windows_that_the_log_has_deleted_are_left_out(new_log: NewLog) -> None:
    """Records of 1970, which the changelog's retention deletes as soon as it is applied."""
    log = new_log("log")
    app = ran(log, "windowed sum", 1, window_changelog_retention_ms=None, allow_expired=True)
    log.admin.clean()  # type: ignore[attr-defined]
    found = verified(log, app)
    assert found.equal
    counts = found.stores["by-window"].counts
    assert (counts.compared, counts.only_history) == (0, 0)
    assert counts.expired > 0


def test_windows_that_the_store_does_not_show_any_more_are_left_out(new_log: NewLog) -> None:
    """No record of a changelog says that its window has expired."""
    log = new_log("log")
    create(log, {"in": [[]]}, [])
    app = log.app("old", window_changelog_retention_ms=-1)
    windows = TimeWindows.tumbling(10, grace=5)
    app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(name="counts")
    log.write("in", [("a", 1, time) for time in range(0, 1_000, 5)])
    run_to_the_end(log, app)
    written = {line.key for line in log.lines(log.partitions("old-counts-changelog")[0]).values()}
    counts = verified(log, app).stores["counts"].counts
    assert 0 < counts.equal < len(written)
    assert counts.compared == counts.equal


@pytest.mark.parametrize("name", ["windowed sum", "joined streams", "joined versions"])
def test_what_goes_on_after_a_hand_over_and_restarts_is_equal(name: str, new_log: NewLog) -> None:
    past = history(name, 8, 2)
    first, rest = split(past, random_cut(past, random.Random(8)))
    log = new_log("log")
    create(log, past, OUTPUTS)
    append(log, first)
    app = program(name, log)
    source = EmbeddedSource(str(log.path / "log.db"))
    hand_over(Backfill(app, source, log.path / "staging", commit_records=16).run(), log.broker)
    second, third = split(rest, random_cut(rest, random.Random(9)))
    for part in (second, third):
        append(log, part)
        run_to_the_end(log, program(name, log))
        found = verified(log, program(name, log))
        assert found.equal, found
        assert found.counts.equal


def test_a_store_without_changelog_is_named_and_left_out(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, {"in": [lines([("a", 1, 1)])]}, [])
    append(log, {"in": [lines([("a", 1, 1)])]})
    app = log.app("unlogged", topology_optimization="all")
    app.table("in", key=str, value=int, name="rows")
    run_to_the_end(log, app)
    found = verified(log, app)
    assert found.left_out == {"rows": "it is restored from topic in"}
    assert found.stores == {}


def test_an_application_that_has_read_a_part_is_compared_up_to_there(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "windowed sum", 2)
    before = verified(log, app)
    append(log, history("windowed sum", 6, 2))
    assert verified(log, app).offsets == before.offsets
    assert verified(log, app).equal


def test_what_is_compared_is_computed_in_a_folder_that_goes_again(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    monkeypatch.setattr("tempfile.tempdir", str(log.path / "temporary"))
    (log.path / "temporary").mkdir()
    assert verified(log, app).equal
    assert list((log.path / "temporary").iterdir()) == []
    assert verified(log, app, staging=log.path / "kept").equal
    assert list((log.path / "kept").iterdir())


def test_nothing_is_written_to_the_log(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "two repartitions", 2)
    before = _everything(log)
    verified(log, app)
    assert _everything(log) == before


def _everything(log: Log) -> Any:
    topics = sorted(log.admin.partition_counts())
    return {p: log.lines(p) for topic in topics for p in log.partitions(topic)}, log.committed("regions")

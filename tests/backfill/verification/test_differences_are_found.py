"""What differs between live stores and history is found, counted and named: the key, and the entries of both sides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pystreams import App, Suppressed, TimeWindows
from pystreams.backfill.exchange import bounded_map
from pystreams.backfill.verification import comparing, entry_form, live_entries
from pystreams.backfill.verification.outcome import Difference, StoreCounts, Verified
from pystreams.record import NO_HEADERS
from pystreams.state.formats import pack_int64
from tests.backfill.kit import lines
from tests.backfill.live import append, create
from tests.backfill.test_stores_with_headers import STORES, keeping
from tests.backfill.test_stores_with_headers import history as with_headers
from tests.backfill.verification.verification_kit import (
    NewLog,
    last_lines,
    ran,
    verified,
    written,
)
from tests.live.support import Line, Log, run_to_the_end

pytestmark = pytest.mark.live

COUNTS = "wc-counts-changelog"


def only(found: Verified, store: str) -> Difference:
    """The difference of the only store that has one."""
    assert not found.equal
    (difference,) = found.stores[store].differences
    assert found.counts.different == 1
    return difference


# Of a plain store


def test_the_result_shows_itself_in_short(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    equal = verified(log, app)
    keys = equal.counts.compared
    assert repr(equal).splitlines() == [
        f"Verified wc. Equal: {keys} keys compared",
        f"  store  counts  {keys} keys compared",
    ]
    true = last_lines(log, COUNTS)[b"w3"]
    written(log, COUNTS, [true._replace(value=pack_int64(99))])
    found = verified(log, app)
    assert repr(found).splitlines() == [
        f"Verified wc. Different: 1 of {keys} keys",
        f"  store  counts  {keys} keys compared, {keys - 1} equal, 1 with another value",
    ]
    assert found._repr_html_().startswith(f"<p>Verified wc. Different: 1 of {keys} keys</p><table>")
    assert repr(found.stores["counts"]).startswith(f"Different: {keys} keys compared, ")


def test_another_value_is_found(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    true = last_lines(log, COUNTS)[b"w3"]
    written(log, COUNTS, [true._replace(value=pack_int64(99))])
    difference = only(verified(log, app), "counts")
    assert (difference.kind, difference.partition, difference.key) == ("value", 0, b"w3")
    assert difference.live == ((b"w3", pack_int64(99), true.timestamp, NO_HEADERS),)
    assert difference.history == ((b"w3", true.value, true.timestamp, NO_HEADERS),)


def test_another_timestamp_is_found_and_distinguished(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    true = last_lines(log, COUNTS)[b"w3"]
    written(log, COUNTS, [true._replace(timestamp=true.timestamp + 1)])
    found = verified(log, app)
    assert only(found, "counts").kind == "timestamp"
    assert found.counts == StoreCounts(equal=11, timestamp=1)


def test_a_timestamp_that_the_store_does_not_keep_is_no_difference(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "punctuated", 1)
    key, true = next(iter(last_lines(log, "ticks-totals-changelog").items()))
    written(log, "ticks-totals-changelog", [true._replace(timestamp=5)])
    assert verified(log, app).equal
    written(log, "ticks-totals-changelog", [true._replace(value=pack_int64(-7))])
    assert only(verified(log, app), "totals").key == key


def test_a_key_that_is_gone_is_found(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    written(log, COUNTS, [Line(b"w3", None, 1)])
    difference = only(verified(log, app), "counts")
    assert (difference.kind, difference.key, difference.live) == ("only history", b"w3", ())


def test_a_key_that_history_does_not_have_is_found(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    written(log, COUNTS, [Line(b"stray", pack_int64(1), 1)])
    difference = only(verified(log, app), "counts")
    assert (difference.kind, difference.key, difference.history) == ("only live", b"stray", ())


def test_all_differences_are_counted_and_the_first_ones_kept(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_REMOVED", 3)
    log = new_log("log")
    app = ran(log, "word count", 2)
    for partition in range(2):
        for line in last_lines(log, COUNTS, partition).values():
            written(log, COUNTS, [line._replace(value=pack_int64(99))], partition)
        written(log, COUNTS, [Line(b"stray%d" % partition, pack_int64(1), 1)], partition)
    found = verified(log, app, limit=5)
    assert found.counts == StoreCounts(value=12, only_live=2)
    assert len(found.stores["counts"].differences) == 5
    assert verified(log, app, limit=0).stores["counts"].differences == ()
    kinds = Counter(one.kind for one in verified(log, app).stores["counts"].differences)
    assert kinds == {"value": 12, "only live": 2}


@pytest.mark.parametrize("name", ["word count", "joined streams", "joined versions"])
def test_stores_that_memory_does_not_hold_are_compared_alike(
    name: str, new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "MEMORY_BYTES", 1_000)
    monkeypatch.setattr(live_entries, "MEMORY_BYTES", 1_000)
    monkeypatch.setattr(live_entries, "_NOTED", 2)
    monkeypatch.setattr(entry_form, "_GATHERED", 3)
    opened = Counter[str]()
    to_disk = bounded_map.BoundedMap._go_to_disk

    def counted(self: Any) -> None:
        opened["databases"] += 1
        to_disk(self)

    monkeypatch.setattr(bounded_map.BoundedMap, "_go_to_disk", counted)
    log = new_log("log")
    app = ran(log, name, 1)
    assert verified(log, app).equal
    assert opened["databases"]
    changelog = next(topic for topic in log.admin.partition_counts() if topic.endswith("-changelog")
                     and "pystreams" not in topic)  # fmt: skip
    line = max(last_lines(log, changelog).values(), key=lambda line: line.timestamp)
    written(log, changelog, [line._replace(value=b"x" * 8)])
    assert verified(log, app).counts.different == 1


# Of windows, records under one key and time, versions


def test_a_window_that_is_wrong_is_found(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "windowed sum", 1)
    changelog = "sums-by-window-changelog"
    key = max(last_lines(log, changelog), key=lambda key: key[-12:])
    written(log, changelog, [last_lines(log, changelog)[key]._replace(value=pack_int64(-1))])
    assert only(verified(log, app), "by-window").key == key


def test_a_record_of_a_join_that_is_gone_is_found(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "joined streams", 1)
    changelog = "joined-met-outer-this-join-store-changelog"
    key = max(last_lines(log, changelog), key=lambda key: key[-12:])
    written(log, changelog, [Line(key, None, 1)])
    difference = only(verified(log, app), "met-outer-this-join-store")
    # The number behind its time says nothing.
    assert difference.key[:-4] == key[:-4]


def test_records_of_one_key_and_time_are_compared_in_their_order(new_log: NewLog) -> None:
    past = {"amounts": [lines([("a", 1, 50), ("a", 2, 50), ("a", 3, 50)])], "names": [[]]}
    log = new_log("log")
    app = ran(log, "joined streams", 1, past)
    changelog = "joined-met-outer-this-join-store-changelog"
    assert verified(log, app).equal
    first, second, _ = last_lines(log, changelog).values()
    written(log, changelog, [first._replace(value=second.value), second._replace(value=first.value)])
    difference = only(verified(log, app), "met-outer-this-join-store")
    assert [entry.value for entry in difference.live] == [pack_int64(n) for n in (2, 1, 3)]
    assert [entry.value for entry in difference.history] == [pack_int64(n) for n in (1, 2, 3)]


NAMES = [("a", "one", 10), ("b", "two", 20), ("a", "three", 60), ("b", None, 65)]
BY_TIME = "versions-names-by-time-changelog"


@pytest.fixture
def versions(new_log: NewLog) -> tuple[Log, App]:
    past = {"names": [lines(NAMES, value=str)], "amounts": [[]]}
    log = new_log("log")
    return log, ran(log, "joined versions", 1, past)


@pytest.mark.parametrize(
    "line, kind, live, history",
    [
        (Line(b"a", b"wrong", 60), "value", [b"wrong"], [b"three"]),
        (Line(b"a", b"wrong", 10), "value", [b"wrong"], [b"one"]),
        (Line(b"a", b"later", 61), "only live", [b"later"], []),
        (Line(b"a", None, 61), "only live", [None], []),
        (Line(b"c", b"stray", 62), "only live", [b"stray"], []),
    ],
)
def test_a_version_that_is_wrong_is_found(
    line: Line, kind: str, live: Any, history: Any, versions: tuple[Log, App]
) -> None:
    log, app = versions
    assert verified(log, app).equal
    written(log, BY_TIME, [line])
    found = verified(log, app).stores["names-by-time"]
    difference = found.differences[-1]
    assert found.counts.different >= 1
    assert (difference.kind, difference.key) == (kind, line.key)
    assert [entry.value for entry in difference.live] == live
    assert [entry.value for entry in difference.history] == history


# Of a program


def test_a_step_that_has_changed_since_is_found(new_log: NewLog) -> None:
    def build(factor: int) -> App:
        app = log.app("doubled", window_changelog_retention_ms=-1)
        amounts = app.stream("in", key=str, value=int).map_values(lambda amount: amount * factor)
        amounts.group_by_key(value=int).reduce(lambda one, other: one + other, name="sums")
        amounts.group_by_key(value=int).windowed_by(TimeWindows.tumbling(1_000)).count(name="counts")
        return app

    log = new_log("log")
    create(log, {"in": [[]]}, [])
    now_ms = 1_790_000_000_000
    append(log, {"in": [lines([("a", 1, now_ms), ("a", 2, now_ms + 1), ("b", 0, now_ms)])]})
    run_to_the_end(log, build(1))
    assert verified(log, build(1)).equal
    found = verified(log, build(2))
    difference = only(found, "sums")
    assert difference.key == b"a"
    assert [entry.value for entry in difference.live + difference.history] == [pack_int64(3), pack_int64(6)]
    assert found.stores["counts"].counts == StoreCounts(equal=2)


def test_a_store_whose_order_is_not_certain_says_so(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "two repartitions", 2)
    found = verified(log, app)
    assert all("several tasks write its input" in found.stores[store].may_differ[0] for store in found.stores)
    other = new_log("other")
    found = verified(other, ran(other, "windowed sum", 2))
    assert [one.may_differ for one in found.stores.values()] == [(), ()]


def test_what_a_cache_forwards_concerns_the_stores_behind_it(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, {"in": [[]]}, [])
    app = log.app("updates")
    counts = app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    counts.to_stream().group_by_key(value=int).count(name="updates")
    log.write("in", [("a", 1, 1)])
    run_to_the_end(log, app)
    found = verified(log, app)
    assert found.stores["counts"].may_differ == ()
    (why,) = found.stores["updates"].may_differ
    assert "its cache forwards only the last update" in why


def test_records_that_history_drops_as_late_behind_a_repartition_are_a_reason(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, {"in": [[]]}, ["final"])
    app = log.app("late", window_changelog_retention_ms=-1)
    by_value = app.stream("in", key=str, value=int).group_by(lambda value: f"{value}", key=str)
    counts = by_value.windowed_by(TimeWindows.tumbling(10)).count(name="counts", step="count")
    counts.suppress(Suppressed.until_window_closes(), step="final").to_stream().to("final")
    log.write("in", [("a", 1, 5), ("a", 1, 100), ("a", 1, 3)])
    run_to_the_end(log, app)
    found = verified(log, app)
    assert found.equal, found
    late = (
        "count: history drops 1 record as too late, which a live application may have kept while its stream time "
        "waited for tasks that lag"
    )
    assert late in found.stores["counts"].may_differ
    # What follows the step may differ, too; and it holds changes back.
    held = "final: while the stream time of a live application waits for tasks that lag, it holds back more changes"
    assert late in found.stores["final-store"].may_differ
    assert any(why.startswith(held) for why in found.stores["final-store"].may_differ)
    assert not any(why.startswith(held) for why in found.stores["counts"].may_differ)


def test_the_counts_of_a_store_add_up() -> None:
    counts = StoreCounts(equal=1, value=2, timestamp=3, only_live=4, only_history=5, since=6, expired=7)
    assert (counts.different, counts.compared) == (14, 15)
    assert (counts + replace(counts, equal=0)).equal == 1


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_other_headers_are_found_where_a_store_keeps_them(persistent: bool, new_log: NewLog) -> None:
    log = new_log("log")
    create(log, with_headers(), ["pairs"])
    append(log, with_headers())
    app = keeping(persistent=persistent, state_dir=log.path / "state")
    run_to_the_end(log, app)
    found = verified(log, app)
    assert found.equal, found
    assert {store for store, one in found.stores.items() if one.counts.equal} >= {*STORES}
    key, true = next(iter(last_lines(log, "keeps-keys-changelog").items()))
    written(log, "keeps-keys-changelog", [true._replace(headers=(*true.headers, ("from", b"shop")))])
    difference = only(verified(log, app), "keys")
    assert (difference.kind, difference.key) == ("value", key)
    (live,), (history,) = difference.live, difference.history
    assert (live.value, live.timestamp) == (history.value, history.timestamp)
    assert (live.headers, history.headers) == ((*true.headers, ("from", b"shop")), true.headers)

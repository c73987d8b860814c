"""Whatever ends a hand-over at whatever moment: the application finds all of it or refuses to start, and handing over
again makes it whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from pystreams import App
from pystreams.backfill.api import backfill
from pystreams.backfill.handover import publishing
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.sources import EmbeddedSource
from pystreams.broker.embedded.transactions import EmbeddedGroupCommitter, EmbeddedTransactionalProducer
from pystreams.broker.port import Write
from pystreams.clock import SystemClock
from pystreams.errors import BrokerError, StateError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.take_over.hand_over_record import HandOverCheck, manifest_topic, read_record
from tests.backfill.kit import Backfill
from tests.backfill.live import SETTINGS, append, create, left_on, raw, split, with_sinks_before
from tests.backfill.programs import history, windowed_sum, word_count
from tests.live.support import Line, Log, eventually, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]
KEPT = {**SETTINGS, "window_changelog_retention_ms": -1}
AT = {TopicPartition("amounts", p): 20 for p in range(2)} | {TopicPartition("names", p): 2 for p in range(2)}


class Killed(BaseException):
    """What ends a process, as far as a test in this one can have it."""


def program(log: Log) -> App:
    return windowed_sum(**KEPT, state_dir=log.path / "state")


def filled(log: Log, seed: int = 5) -> Any:
    past = history("windowed sum", seed, 2)
    create(log, past, ["sums"])
    append(log, past)
    source = EmbeddedSource(str(log.path / "log.db"))
    return Backfill(program(log), source, log.path / "staging", until=AT, commit_records=16).run()


def live_with_a_stop(log: Log, seed: int = 5) -> Any:
    prefix, rest = split(history("windowed sum", seed, 2), AT)
    create(log, history("windowed sum", seed, 2), ["sums"])
    for part in (prefix, rest):
        append(log, part)
        run_to_the_end(log, program(log))
    return left_on(log, program(log), ["sums"])


def _after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: int) -> None:
    """Kill right after so many calls of a method."""
    original, count = getattr(owner, name), 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        result = original(*arguments, **named)
        if count == calls:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, counted)


# Two stores of two partitions each: told, published four times, committed.
@pytest.mark.parametrize(
    "owner, name, calls, whole",
    [
        (EmbeddedGroupCommitter, "commit", 1, False),
        (publishing._Publishing, "replace", 1, False),
        (publishing._Publishing, "replace", 3, False),
        (publishing._Publishing, "_send", 2, False),
        (publishing.LastValues, "__init__", 4, False),
        (EmbeddedTransactionalProducer, "commit", 2, False),
        (EmbeddedGroupCommitter, "commit", 2, True),
    ],
)
def test_half_of_it_is_refused_and_the_next_one_makes_it_whole(
    owner: Any, name: str, calls: int, whole: bool, new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("handed")
    result = filled(log)
    with monkeypatch.context() as patch:
        # A transaction for each record: there is a moment when half of a store partition is there.
        patch.setattr(EmbeddedTransactionalProducer, "transaction_records_max", 1)
        _after(patch, owner, name, calls)
        with pytest.raises(Killed):
            hand_over(result, log.broker)
    if not whole:
        with pytest.raises(StateError, match="the hand-over of a backfill is incomplete"):
            run_to_the_end(log, program(log))
    assert hand_over(result, log.broker).complete_before is whole
    run_to_the_end(log, program(log))
    found = with_sinks_before(result, left_on(log, program(log), ["sums"]))
    assert found == live_with_a_stop(new_log("live"))


def test_an_application_that_went_on_is_not_set_back(new_log: NewLog) -> None:
    log = new_log("log")
    result = filled(log)
    hand_over(result, log.broker)
    run_to_the_end(log, program(log))
    went_on = left_on(log, program(log), ["sums"])
    changelog = raw(log, TopicPartition("sums-by-window-changelog", 0))
    again = hand_over(result, log.broker)
    assert (again.complete_before, again.stores) == (True, {})
    assert left_on(log, program(log), ["sums"]) == went_on
    assert raw(log, TopicPartition("sums-by-window-changelog", 0)) == changelog


def test_resumed_or_gone_on_from_it_is_the_same_backfill_or_a_later_one(new_log: NewLog) -> None:
    """The log has more topics by then: those of the application, and those of the hand-over."""
    log = new_log("log")
    result = filled(log)
    hand_over(result, log.broker)
    source = EmbeddedSource(str(log.path / "log.db"))
    again = backfill(program(log), sources=source, staging=log.path / "staging", resume=True)
    assert again.manifest == result.manifest
    assert hand_over(again, log.broker).complete_before
    later = backfill(program(log), sources=source, staging=log.path / "later", previous=log.path / "staging")
    done = hand_over(later, log.broker)
    assert not done.complete_before
    ends = {p: at.offset for p, at in log.committed("sums").items() if p.topic == "amounts"}
    assert ends == log.admin.end_offsets(ends)


def test_local_state_of_before_is_not_gone_on_with(new_log: NewLog) -> None:
    """The application has run to the end, then a backfill sets it back: its windows are of a later time."""
    log = new_log("log")
    result = filled(log)
    run_to_the_end(log, program(log))
    hand_over(result, log.broker)
    run_to_the_end(log, program(log))
    expected = live_with_a_stop(new_log("live"))
    found = left_on(log, program(log), ["sums"])
    assert found.changelogs == expected.changelogs
    assert found.offsets == expected.offsets


def test_a_second_hand_over_takes_over_from_the_first(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is still alive when the second begins: nothing that it tries counts any more."""
    log = new_log("log")
    result = filled(log)
    late: list[PublishStore] = []

    def noted(work: PublishStore, *arguments: Any) -> bytes:
        late.append(work)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(PublishStore, "__call__", noted)
        with pytest.raises(Killed):
            hand_over(result, log.broker)
    hand_over(result, log.broker)
    with pytest.raises(StateError, match="another hand-over to sums has begun"):
        late[0](0, iter(()))


def test_two_do_not_write_the_same_at_once(new_log: NewLog) -> None:
    log = new_log("log")
    result = filled(log)
    id = "sums-backfill-by-window-1"
    with (
        closing(log.broker.transactional_producer("other", id)),
        pytest.raises(BrokerError, match=f"another process is writing as {id}"),
    ):
        hand_over(result, log.broker)
    hand_over(result, log.broker)


def test_of_a_hand_over_and_a_start_at_the_same_time_one_gives_in(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    result = filled(log)
    hand_over(result, log.broker)
    told = read_record(log.broker, log.admin, "sums", SystemClock())
    assert told is not None
    check, checks = HandOverCheck.check, 0

    def with_a_hand_over_behind_the_first(self: HandOverCheck) -> None:
        nonlocal checks
        checks += 1
        check(self)
        if checks == 1:
            begun = replace(told, attempt="another", complete=False).to_bytes()
            with closing(log.broker.group_committer("other", "sums", "other")) as committer:
                committer.commit([Write(manifest_topic("sums"), 0, b"manifest", begun, 1)], {})

    monkeypatch.setattr(HandOverCheck, "check", with_a_hand_over_behind_the_first)
    streams = log.start(program(log))
    eventually(lambda: streams.finished, "the client ends")
    assert isinstance(streams.failure, StateError)
    assert "the hand-over of a backfill is incomplete" in str(streams.failure)


def test_a_group_that_has_got_members_meanwhile_gets_no_offsets(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, history("word count", 1, 1), ["word-counts"])
    streams = log.start(word_count(**SETTINGS, state_dir=log.path / "state"))
    eventually(lambda: log.admin.group_members("wc"), "a member")
    write = Write("word-counts", 0, b"k", b"v", 1)
    with closing(log.broker.group_committer("c", "wc", "id")) as committer:
        with pytest.raises(BrokerError, match="has 1 member:"):
            committer.commit([write], {})
        assert streams.close(30_000)
        committer.commit([write], {})
    assert raw(log, TopicPartition("word-counts", 0)) == [Line(b"k", b"v", 1)]


def _other(log: Log, **settings: str) -> App:
    app = App("sums", **{**KEPT, **settings}, state_dir=log.path / "state")
    app.table("names", key=str, value=str)
    app.stream("amounts", key=str, value=int).group_by_key(value=int).count(name="by-key")
    return app


def test_another_topology_is_refused_until_the_application_has_gone_on(new_log: NewLog) -> None:
    log = new_log("log")
    hand_over(filled(log), log.broker)
    with pytest.raises(TopologyError, match=r"sub-topology 0: node KTABLE-SOURCE-\d+ was .*, now "):
        run_to_the_end(log, _other(log))
    run_to_the_end(log, program(log))
    with pytest.raises(TopologyError, match="stored content would be lost"):
        run_to_the_end(log, _other(log))
    run_to_the_end(log, _other(log, accept_loss="names-STATE-STORE-0000000000,by-window"))


def test_a_backfill_without_offsets_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    result = filled(log)
    made_up = replace(result, manifest=replace(result.manifest, approximate=True))
    with pytest.raises(StateError, match="the sources of this backfill have no offsets"):
        hand_over(made_up, log.broker)


def test_a_record_that_cannot_be_read_is_reported(new_log: NewLog) -> None:
    log = new_log("log")
    hand_over(filled(log), log.broker)
    append(log, {manifest_topic("sums"): [[Line(b"manifest", b"{}", 1)]]})
    with pytest.raises(StateError, match="not a record of a hand-over"):
        run_to_the_end(log, program(log))

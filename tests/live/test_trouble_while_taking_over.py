"""A take-over that is killed, or not permitted, on the way: nothing counts twice, and the same command does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import pytest

from pystreams.errors import BrokerError, StreamsError, TopicError
from pystreams.runtime.startup import carry_over
from pystreams.runtime.streams import Streams
from pystreams.take_over.last_run import topology_topic
from tests.live.support import Log, caught_up, run_to_the_end
from tests.live.taking_over_kit import DiesOnTheWay, Killed, One, kept, lines, summing, write


@pytest.fixture(autouse=True)
def topics(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create("in", "other", "out", partitions=2)
    # Who was killed is not waited for.
    monkeypatch.setattr(carry_over, "_BY_ANOTHER_MS", 100.0)


def killed(log: Log, at: str, *arguments: Any, **store: Any) -> None:
    with pytest.raises(Killed):
        Streams(summing(log, One, *arguments, **store), broker=DiesOnTheWay(log.broker, at)).start()  # type: ignore[arg-type]


@pytest.mark.parametrize("at", ["send", "commit", "delete_topics"])
def test_a_carry_over_that_is_killed_is_done_again(log: Log, at: str) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    before = lines(log, "shop-sums-changelog")
    killed(log, at, "totals", was="sums")
    write(log, 5)
    streams = log.start(summing(log, One, "totals", was="sums"))
    caught_up(streams)
    assert log.table("out") == dict.fromkeys("abcdef", 105)
    after = lines(log, "shop-totals-changelog")
    assert all(copied >= was for copied, was in zip(after, before, strict=True))
    assert sum(map(Counter.total, after)) == 12


def test_after_a_killed_carry_over_the_old_version_can_go_on(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    killed(log, "send", "totals", was="sums")
    write(log, 5)
    run_to_the_end(log, summing(log, One))
    assert log.table("out") == dict.fromkeys("abcdef", 105)
    assert "shop-totals-changelog" not in log.admin.partition_counts()


def test_an_old_changelog_that_was_not_deleted_any_more_is_deleted_at_the_next_start(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    killed(log, "delete_topics", "totals", was="sums")
    assert "shop-sums-changelog" in log.admin.partition_counts()
    run_to_the_end(log, summing(log, One, "totals", was="sums"))
    assert "shop-sums-changelog" not in log.admin.partition_counts()


def test_a_new_store_is_not_restored_from_what_a_former_one_of_its_name_has_left(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    killed(log, "delete_topics", "totals", was="sums")
    app = summing(log, One, "totals")
    log.create("counts")
    app.stream("other", key=str, value=int).group_by_key().count(name="sums").to_stream().to("counts")
    log.write("other", [(key, 1, 1_000) for key in "abcdef"])
    run_to_the_end(log, app)
    assert log.table("counts") == dict.fromkeys("abcdef", 1)
    assert sum(map(Counter.total, lines(log, "shop-sums-changelog"))) == 6


@pytest.mark.parametrize("at", ["commit", "delete_topics"])
def test_an_accepted_loss_that_is_killed_is_done_by_the_same_command(log: Log, at: str) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    accept = {"accept_loss": "sums"}
    killed(log, at, "totals", accept)
    write(log, 5)
    for _ in range(2):
        run_to_the_end(log, summing(log, One, "totals", accept))
    assert log.table("out") == dict.fromkeys("abcdef", 5)


def test_an_accepted_loss_is_reported(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    run_to_the_end(log, summing(log, One, "totals", {"accept_loss": "sums"}))
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text for text in told if "content is lost, as accept_loss permits: store sums" in text]


class Refusing:
    """A log whose admin client answers the calls of a method that concern a topic with errors, as long as there are
    any: by default with what a login without the permission gets."""

    def __init__(
        self, inner: Any, method: str, topic: str, errors: Iterable[StreamsError] | None = None
    ) -> None:
        self._inner = inner
        self._method = method
        self._topic = topic
        self._errors = iter(repeat(BrokerError("not permitted")) if errors is None else errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def admin(self) -> Any:
        return _RefusingAdmin(self._inner.admin(), self._method, self._topic, self._errors)


class _RefusingAdmin:
    def __init__(self, inner: Any, method: str, topic: str, errors: Iterator[StreamsError]) -> None:
        self._inner = inner
        self._method = method
        self._topic = topic
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        def called(concerned: Any, *arguments: Any) -> Any:
            names = [getattr(item, "topic", getattr(item, "name", item)) for item in concerned]
            if self._topic in names and (error := next(self._errors, None)) is not None:
                raise error
            return found(concerned, *arguments)

        return called


def test_a_changelog_that_another_member_is_creating_again_is_no_failure(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    killed(log, "commit", "totals", was="sums")
    write(log, 5)
    errors = [TopicError("Offsets cannot be listed", why="Broker: Unknown topic or partition")]
    being_made: Any = Refusing(log.broker, "end_offsets", "shop-totals-changelog", iter(errors))
    streams = Streams(summing(log, One, "totals", was="sums"), broker=being_made)
    try:
        streams.start()
        caught_up(streams)
    finally:
        streams.close()
    assert log.table("out") == dict.fromkeys("abcdef", 105)


def test_without_the_topic_of_what_ran_last_nothing_is_moved_and_the_error_names_it(log: Log) -> None:
    write(log, 100)
    refusing: Any = Refusing(log.broker, "create_topics", topology_topic("shop"))
    first = Streams(summing(log, One), broker=refusing)
    first.start()
    caught_up(first)
    first.close()
    with pytest.raises(
        BrokerError, match="pystreams-topology-changelog does not exist, and cannot be created"
    ):
        Streams(summing(log, One, "totals", was="sums"), broker=refusing).start()
    run_to_the_end(log, summing(log, One, "totals", was="sums"))
    write(log, 5)
    run_to_the_end(log, summing(log, One, "totals", was="sums"))
    assert log.table("out") == dict.fromkeys("abcdef", 105)


def test_what_is_not_permitted_is_reported_at_once_and_can_be_done_later(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    refusing: Any = Refusing(log.broker, "delete_topics", "shop-sums-changelog")
    accepting = summing(log, One, "totals", {"accept_loss": "sums"})
    with pytest.raises(BrokerError, match="not permitted"):
        Streams(accepting, broker=refusing).start()
    last = kept(log)
    assert last is not None
    assert last.unfinished is not None
    write(log, 5)
    run_to_the_end(log, summing(log, One, "totals", {"accept_loss": "sums"}))
    assert log.table("out") == dict.fromkeys("abcdef", 5)

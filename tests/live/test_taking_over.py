"""A new version takes over what the old one has stored: compared before it starts, carried over to new names, or
deleted where somebody has accepted that."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import EmitStrategy, JoinWindows, Processor, SessionWindows, Stores, Suppressed, TimeWindows
from pystreams.app import App
from pystreams.errors import BrokerError, ConfigError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.record import Record
from pystreams.runtime.streams import Streams
from pystreams.take_over.last_run import topology_topic
from tests.live.support import TIMEOUT_S, Log, caught_up, run_to_the_end, running
from tests.live.taking_over_kit import DiesOnTheWay, One, Three, Two, kept, lines, summing, write

#: Nothing fits beside the offsets then.
NO_CHARACTERS = "pystreams.engine.offset_metadata.TEXT_CHARACTERS_MAX", 10


@pytest.fixture(autouse=True)
def topics(log: Log) -> None:
    log.create("in", "other", "out", partitions=2)


def test_another_machine_knows_what_ran_last(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    with pytest.raises(TopologyError, match="stored content would be lost: sums"):
        log.start(summing(log, One, "totals", {"state_dir": log.path / "elsewhere"}))


def test_the_refusal_names_what_is_lost_and_the_ways_on(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, Two))
    with pytest.raises(TopologyError) as refused:
        log.start(summing(log, One))
    assert "b" in refused.value.why
    for way in ("--accept-loss sums", "pystreams reset"):
        assert way in refused.value.hint
    with pytest.raises(TopologyError, match='name="totals", was="sums"'):
        log.start(summing(log, Two, "totals"))


def test_a_store_that_is_named_after_its_step_comes_back_with_the_name_of_the_step(log: Log) -> None:
    def program(step: str) -> App:
        app = log.app("shop")
        orders = app.table("in", key=str, value=int, name="orders")
        customers = app.table("other", key=str, value=int, name="customers")
        joined = orders.join(
            customers, lambda order, customer: order + customer, foreign_key=str, value=int, step=step
        )
        joined.to_stream().to("out")
        return app

    write(log, 100)
    run_to_the_end(log, program("priced"))
    with pytest.raises(TopologyError) as refused:
        log.start(program("valued"))
    assert "step=" in refused.value.hint
    assert "priced-subscription-store" in refused.value.hint
    assert "was=" not in refused.value.hint
    run_to_the_end(log, program("priced"))


def test_to_accept_what_is_not_lost_is_a_mistake_that_names_what_is(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, Two))
    with pytest.raises(ConfigError, match=r"(?s)lose nothing: summs.*the stores that lose content are sums"):
        log.start(summing(log, One, settings={"accept_loss": "summs,sums"}))
    with pytest.raises(ConfigError, match="no store loses any content"):
        log.start(summing(log, Two, settings={"accept_loss": "sums"}))


def test_a_start_that_processes_nothing_is_not_what_ran_last(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    before = kept(log)
    run_to_the_end(log, summing(log, Two))
    assert kept(log) == before
    write(log, 5)
    run_to_the_end(log, summing(log, Two))
    assert kept(log) != before


def test_nothing_is_written_while_the_topology_stays_the_same(log: Log) -> None:
    for _ in range(3):
        write(log, 1)
        run_to_the_end(log, summing(log, One))
    assert len(log.lines(TopicPartition(topology_topic("shop"), 0))) == 1


def test_what_an_earlier_version_has_written_counts_as_long_as_it_may_be_there(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    log.write("in", [("a", 5, 2_000)])
    run_to_the_end(log, summing(log, Two))
    # Two could be read as Three, but for "b" to "f" there is still One.
    with pytest.raises(TopologyError, match="an earlier version has written some of its content"):
        log.start(summing(log, Three))


def test_local_state_of_before_a_loss_is_not_used_by_any_machine(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    forever = {"window_changelog_retention_ms": -1}
    elsewhere = {**forever, "state_dir": log.path / "elsewhere"}
    windows = TimeWindows.tumbling(10_000)

    def counting(settings: dict[str, Any]) -> App:
        app = log.app("shop", **settings)
        counted = app.stream("in", key=str, value=int).group_by_key().windowed_by(windows)
        counts = counted.count(name="sums", retention=3_600_000).to_stream()
        counts.map(lambda window, count: (window.key, count), key=str, value=int).to("out")
        return app

    run_to_the_end(log, counting({**elsewhere, "accept_loss": "sums"}))
    write(log, 1)
    run_to_the_end(log, counting(elsewhere))
    write(log, 1)
    # Here lies what the first version has left.
    run_to_the_end(log, counting(forever))
    assert log.table("out") == dict.fromkeys("abcdef", 2)


@pytest.mark.parametrize(("name", "warnings"), [("totals", 1), ("sums", 0)])
def test_without_a_record_a_changelog_that_nobody_uses_is_reported(
    log: Log, caplog: pytest.LogCaptureFixture, name: str, warnings: int
) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    log.admin.delete_topics([topology_topic("shop")])
    # As behind Kafka Streams: no record on the log, none on the disk.
    run_to_the_end(log, summing(log, One, name, {"state_dir": log.path / "elsewhere"}))
    told = [one.getMessage() for one in caplog.records if "shop-sums-changelog" in one.getMessage()]
    assert len(told) == warnings
    assert all('was="sums"' in one for one in told)


def test_what_is_lost_with_permission_is_reported_once(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, Two))
    for _ in range(2):
        run_to_the_end(log, summing(log, One, settings={"accept_loss": "sums"}))
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert told == [
        "content is lost, as accept_loss permits: store sums loses a part of its content: value.b is gone"
    ]


def test_nothing_is_deleted_while_the_old_version_runs(log: Log) -> None:
    write(log, 100)
    old = log.start(summing(log, Two))
    caught_up(old)
    with pytest.raises(BrokerError, match="is running"):
        log.start(summing(log, One, settings={"accept_loss": "sums", "state_dir": log.path / "elsewhere"}))
    write(log, 5)
    caught_up(old)
    assert log.table("out") == dict.fromkeys("abcdef", 105)


def stop(value: int) -> None:
    raise ValueError("not now")


def test_records_that_wait_in_a_repartition_topic_are_not_left_behind(log: Log) -> None:
    def app(name: str) -> App:
        app = log.app("shop")
        first = app.stream("in", key=str, value=int).select_key(lambda key, value: key, key=str)
        first.repartition(name=name).peek(stop).to("out")
        return app

    write(log, 100)
    failing = log.start(app("first"))
    failing.wait_for(lambda: failing.finished, 1000 * TIMEOUT_S)
    with pytest.raises(TopologyError, match=r"(?s)it holds \d records? not processed yet.*--until-caught-up"):
        log.start(app("second"))


# Other names


def windowed(log: Log, name: str, **store: Any) -> App:
    app = log.app("shop", dsl_store_format="HEADERS", window_changelog_retention_ms=-1)
    grouped = app.stream("in", key=str, value=int).group_by_key()
    grouped.windowed_by(TimeWindows.tumbling(10)).count(
        name=f"{name}-windows", retention=100_000, **_was(store, "windows")
    )
    grouped.windowed_by(SessionWindows.of(5)).count(
        name=f"{name}-sessions", retention=100_000, **_was(store, "sessions")
    )
    other = app.stream("other", key=str, value=int)
    joined = app.stream("in2", key=str, value=int).outer_join(
        other,
        lambda a, b: (a or 0) + (b or 0),
        windows=JoinWindows.of(1_000),
        value=int,
        name=f"{name}-join",
        **_was(store, "join"),
    )
    joined.to("out")
    return app


def _was(store: dict[str, Any], suffix: str) -> dict[str, Any]:
    return {"was": f"{store['was']}-{suffix}"} if store else {}


def test_windows_sessions_and_joins_keep_keys_times_and_headers(log: Log) -> None:
    log.create("in2", partitions=2)
    log.write("in", [(key, value, 10 * value) for key in "abcdef" for value in range(5)])
    log.write("in2", [(key, 1, 10) for key in "abc"])
    run_to_the_end(log, windowed(log, "old"))
    stores = [
        "windows",
        "sessions",
        "join-outer-this-join-store",
        "join-outer-other-join-store",
        "join-outer-shared-join-store",
    ]
    before = {store: lines(log, f"shop-old-{store}-changelog") for store in stores}
    assert any(before["join-outer-shared-join-store"])
    run_to_the_end(log, windowed(log, "new", was="old"))
    assert {store: lines(log, f"shop-new-{store}-changelog") for store in stores} == before
    assert not [topic for topic in log.admin.partition_counts() if topic.startswith("shop-old-")]
    # Once more, with the same program.
    run_to_the_end(log, windowed(log, "new", was="old"))
    assert {store: lines(log, f"shop-new-{store}-changelog") for store in stores} == before


def test_a_generated_name_becomes_a_given_one(log: Log) -> None:
    def app(**store: Any) -> App:
        app = log.app("shop")
        app.stream("in", key=str, value=int).group_by_key().count(**store).to_stream().to("out")
        return app

    write(log, 1)
    run_to_the_end(log, app())
    write(log, 1)
    run_to_the_end(log, app(name="counts", was="KSTREAM-AGGREGATE-STATE-STORE-0000000001"))
    assert log.table("out") == dict.fromkeys("abcdef", 2)


def test_changes_that_are_held_back_are_let_go_under_a_new_name(log: Log) -> None:
    def app(**step: Any) -> App:
        app = log.app("shop", window_changelog_retention_ms=-1)
        counts = (
            app.stream("in", key=str, value=int)
            .group_by_key()
            .windowed_by(TimeWindows.tumbling(10_000, grace=0))
            .count(name="counts")
        )
        final = counts.suppress(Suppressed.until_window_closes(), **step).to_stream()
        final.map(lambda window, count: (window.key, count), key=str, value=int).to("out")
        return app

    write(log, 1)
    run_to_the_end(log, app())
    assert not log.table("out")
    (held,) = re.findall(r"KTABLE-SUPPRESS-STATE-STORE-\d+", app().build().describe())
    with pytest.raises(TopologyError, match=f"stored content would be lost: {held}"):
        log.start(app(step="final"))
    log.write("in", [(key, 1, 100_000) for key in "abcdef"])
    run_to_the_end(log, app(step="final", was=held))
    assert log.table("out") == dict.fromkeys("abcdef", 1)


def test_results_that_wait_are_dropped_with_the_store_that_they_come_from(log: Log) -> None:
    def app(size_ms: int, **settings: Any) -> App:
        app = log.app("shop", window_changelog_retention_ms=-1, **settings)
        windows = TimeWindows.tumbling(size_ms, grace=0)
        counts = app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(name="counts")
        final = counts.suppress(Suppressed.until_window_closes(), step="final").to_stream()
        final.map(lambda window, count: (window.key, count), key=str, value=int).to("out")
        return app

    write(log, 1)
    run_to_the_end(log, app(10_000))
    with pytest.raises(TopologyError, match="stored content would be lost: counts\n"):
        log.start(app(20_000))
    log.write("in", [(key, 1, at) for at in (2_000, 100_000) for key in "abcdef"])
    run_to_the_end(log, app(20_000, accept_loss="counts"))
    # Of the first record nothing is left, neither in the counts nor in what waits.
    assert log.table("out") == dict.fromkeys("abcdef", 1)


@pytest.mark.parametrize("logged", [True, False])
def test_a_store_of_a_processor_keeps_its_content(log: Log, logged: bool) -> None:
    class Sum(Processor[str, int, str, int]):
        def __init__(self, name: str) -> None:
            self.name = name

        def init(self, context: Any) -> None:
            super().init(context)
            self.sums = context.store(self.name)

        def process(self, record: Record[str, int]) -> None:
            self.sums.put(record.key, (self.sums.get(record.key) or 0) + record.value)
            self.context.forward(record.with_value(self.sums.get(record.key)))

    def app(name: str, was: str | None) -> App:
        app = log.app("shop")
        store = Stores.key_value_store(name, str, int, logged=logged, was=was)
        stream = app.stream("in", key=str, value=int)
        stream.process(lambda: Sum(name), stores=[store], key=str, value=int).to("out")
        return app

    write(log, 100)
    run_to_the_end(log, app("old", None))
    write(log, 5)
    for _ in range(2):
        run_to_the_end(log, app("new", "old"))
        assert log.table("out") == dict.fromkeys("abcdef", 105)
    with pytest.raises(TopologyError, match="stored content would be lost: new"):
        log.start(app("old", None))


def test_members_that_start_together_carry_over_once(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    write(log, 5)
    clients: list[Streams] = []
    failures: list[BaseException] = []
    together = threading.Barrier(3)

    def start(number: int) -> None:
        settings = {"state_dir": log.path / f"machine-{number}"}
        together.wait()
        try:
            clients.append(log.start(summing(log, One, "totals", settings, was="sums")))
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for client in clients:
        running(client)
    caught_up(clients[0])
    assert log.table("out") == dict.fromkeys("abcdef", 105)
    assert sum(map(Counter.total, lines(log, "shop-totals-changelog"))) == 12


def test_who_comes_second_goes_on_though_the_first_has_joined_the_group_by_then(log: Log) -> None:
    write(log, 100)
    run_to_the_end(log, summing(log, One))
    first = summing(log, One, "totals", {"state_dir": log.path / "first"}, was="sums")

    class ComesSecond(DiesOnTheWay):
        def group_committer(self, client_id: str, group: str, transactional_id: str) -> Any:
            running(log.start(first))
            raise BrokerError("somebody else is writing")

    second = Streams(summing(log, One, "totals", was="sums"), broker=ComesSecond(log.broker, ""))  # type: ignore[arg-type]
    second.start()
    assert second.close(1000 * TIMEOUT_S)
    write(log, 5)
    run_to_the_end(log, first)
    assert log.table("out") == dict.fromkeys("abcdef", 105)


def test_a_former_name_is_no_part_of_what_members_compare(log: Log) -> None:
    plain, renamed = (
        summing(log, One, "totals", **store).build().build("shop") for store in ({}, {"was": "sums"})
    )
    assert plain.fingerprint == renamed.fingerprint


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda grouped: grouped.count(was="sums"), "only with name="),
        (
            lambda grouped: grouped.count().suppress(Suppressed.until_time_limit(1), was="sums"),
            "only with step=",
        ),
        (
            lambda grouped: (grouped.count(name="a"), grouped.count(name="b", was="a")),
            "the application still has a store",
        ),
        (
            lambda grouped: (grouped.count(name="a", was="x"), grouped.count(name="b", was="x")),
            "cannot both have been x",
        ),
    ],
)
def test_former_names_that_make_no_sense_are_reported(
    log: Log, make: Callable[[Any], Any], told: str
) -> None:
    def build() -> None:
        app = log.app("shop")
        make(app.stream("in", key=str, value=int).group_by_key())
        app.build().build("shop")

    with pytest.raises(TopologyError, match=told):
        build()


def test_windows_that_were_emitted_stay_emitted_under_a_new_name_wherever_that_is_committed(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*NO_CHARACTERS)

    def emitting(name: str, was: str | None = None) -> App:
        app = log.app("shop", window_changelog_retention_ms=-1)
        windowed = (
            app.stream("in", key=str, value=int).group_by_key().windowed_by(TimeWindows.tumbling(1_000))
        )
        counts = windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(name=name, was=was)
        counts.to_stream().map(lambda window, _: (window.key, window.start), key=str, value=int).to("out")
        return app

    log.write("in", [("k", 1, time) for time in (1_000, 2_000, 3_000)])
    run_to_the_end(log, emitting("counts"))
    log.write("in", [("k", 1, 4_000)])
    run_to_the_end(log, emitting("per-second", was="counts"))
    assert [start for _, start, _ in log.read("out")] == [1_000, 2_000, 3_000]

"""Every process has all rows of a global table, before its first task runs and ever after."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, ClassVar

import pytest

from pystreams import Stores
from pystreams.app import App
from pystreams.errors import SerializationError, StateError, TopicError
from pystreams.ids import TopicPartition
from pystreams.processor import Processor, ProcessorContext
from pystreams.record import Record
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.global_thread import GlobalStores
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end, running


def priced(item: str, price: int | None) -> str:
    return f"{item}={price}"


def shop(log: Log, name: str = "shop", *, persistent: bool = True, **settings: object) -> App:
    app = log.app(name, **{"num_stream_threads": 2, **settings})
    prices = app.global_table("prices", key=str, value=int, name="prices-store", persistent=persistent)
    app.stream("sales", key=str, value=str).join(prices, priced, key_fn=lambda item: item, value=str).to(
        "sold"
    )
    return app


def write_prices(log: Log, **prices: int | None) -> None:
    log.write("prices", [(item, price, 1_000) for item, price in prices.items()])


def rows(streams: Streams, name: str = "prices-store") -> dict[str, int]:
    return {key: item.value for key, item in streams.store(name).all()}


@pytest.mark.parametrize("persistent", [True, False])
def test_tasks_find_all_rows_wherever_they_are_partitioned(log: Log, persistent: bool) -> None:
    log.create("prices", partitions=4)
    log.create("sales", "sold", partitions=3)
    items = {f"item{n}": n for n in range(200)}
    write_prices(log, **items)
    log.write("sales", [(f"customer{n}", f"item{n}", 2_000 + n) for n in range(200)], value=str)
    run_to_the_end(log, shop(log, persistent=persistent))
    assert log.table("sold", value=str) == {f"customer{n}": f"item{n}={n}" for n in range(200)}


@pytest.mark.both_logs
def test_it_is_kept_up_to_date_while_the_application_runs(log: Log) -> None:
    log.create("prices", "sales", "sold", partitions=2)
    write_prices(log, tea=3, milk=1)
    streams = log.start(shop(log))
    running(streams)
    assert rows(streams) == {"tea": 3, "milk": 1}
    write_prices(log, tea=4, milk=None)
    eventually(lambda: rows(streams) == {"tea": 4}, "the new prices are there")
    assert streams.store("prices-store").get("tea").value == 4
    log.write("sales", [("ann", "tea", 2_000), ("bob", "milk", 2_000)], value=str)
    caught_up(streams)
    assert log.table("sold", value=str) == {"ann": "tea=4"}


@pytest.mark.both_logs
def test_what_changed_while_the_application_was_down_is_read_before_it_goes_on(log: Log) -> None:
    log.create("prices", "sales", "sold", partitions=2)
    write_prices(log, tea=3, milk=1)
    run_to_the_end(log, shop(log))
    write_prices(log, tea=5, milk=None, salt=2)
    log.write("sales", [(f"c{n}", item, 2_000) for n, item in enumerate(("tea", "milk", "salt"))], value=str)
    restored: list[tuple[str, int, int]] = []

    class Listener:
        def on_restore_start(self, partition, store, start_offset, end_offset):  # type: ignore[no-untyped-def]
            restored.append((store, start_offset, end_offset))

        def on_batch_restored(self, partition, store, next_offset, records): ...  # type: ignore[no-untyped-def]

        def on_restore_end(self, partition, store, records): ...  # type: ignore[no-untyped-def]

    streams = log.start(shop(log), prepare=lambda client: client.set_restore_listener(Listener()))
    caught_up(streams)
    assert log.table("sold", value=str) == {"c0": "tea=5", "c2": "salt=2"}
    # Only what was new was read.
    of_prices = [(start, end) for store, start, end in restored if store == "prices-store"]
    assert sum(end - start for start, end in of_prices) == 3


@pytest.mark.both_logs
def test_clients_that_share_a_state_directory_have_tables_of_their_own(log: Log) -> None:
    log.create("prices", "sales", "sold", partitions=2)
    write_prices(log, tea=3)
    one, two = log.start(shop(log)), log.start(shop(log))
    for streams in (one, two):
        running(streams)
        assert rows(streams) == {"tea": 3}
    folders = sorted(path.name for path in (log.path / "state" / "shop").glob("global-*"))
    assert folders == ["global-1", "global-2"]


@pytest.mark.both_logs
def test_a_topic_that_has_lost_records_that_were_not_read_is_read_anew(log: Log) -> None:
    log.create("prices", "sales", "sold")
    write_prices(log, tea=3, milk=1)
    run_to_the_end(log, shop(log))
    write_prices(log, tea=None)
    log.admin.delete_records({TopicPartition("prices", 0): 3}).wait()
    write_prices(log, salt=2)
    streams = log.start(shop(log))
    running(streams)
    assert rows(streams) == {"salt": 2}


def test_a_topic_that_does_not_exist_is_named_at_the_start(log: Log) -> None:
    log.create("sales", "sold")
    streams = Streams(shop(log), broker=log.broker)
    with pytest.raises(TopicError, match="prices"):
        streams.start()
    assert streams.state is ClientState.ERROR


@pytest.mark.both_logs
def test_a_row_that_cannot_be_read_stops_the_start(log: Log) -> None:
    log.create("prices", "sales", "sold")
    log.write("prices", [("tea", "no number of eight bytes", 1_000)], value=str)
    streams = Streams(shop(log), broker=log.broker)
    with pytest.raises(SerializationError, match="prices") as failed:
        streams.start()
    assert "offset 0" in failed.value.where
    assert streams.state is ClientState.ERROR
    assert not [thread for thread in threading.enumerate() if "Global" in thread.name]


def test_a_row_that_cannot_be_read_can_be_left_out(log: Log) -> None:
    log.create("prices", "sales", "sold")
    log.write("prices", [("tea", "no number of eight bytes", 1_000)], value=str)
    write_prices(log, milk=1)
    streams = log.start(shop(log, deserialization_exception_handler="continue"))
    running(streams)
    assert rows(streams) == {"milk": 1}


@pytest.mark.both_logs
def test_a_row_that_cannot_be_read_later_stops_the_client(log: Log) -> None:
    log.create("prices", "sales", "sold")
    streams = log.start(shop(log))
    running(streams)
    log.write("prices", [("tea", "no number of eight bytes", 1_000)], value=str)
    eventually(lambda: streams.finished, "the client ends")
    assert streams.state is ClientState.ERROR
    assert isinstance(streams.failure, SerializationError)


def test_a_row_that_cannot_be_read_between_filling_and_running_stops_the_client(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create("prices", "sales", "sold")
    fill = GlobalStores.fill

    def fill_and_fail(stores: GlobalStores, *arguments: Any) -> bool:
        filled = fill(stores, *arguments)
        log.write("prices", [("tea", "no number of eight bytes", 1_000)], value=str)
        eventually(lambda: stores.failure is not None, "the thread fails")
        return filled

    monkeypatch.setattr(GlobalStores, "fill", fill_and_fail)
    streams = log.start(shop(log))
    eventually(lambda: streams.finished, "the client ends")
    assert streams.state is ClientState.ERROR
    assert isinstance(streams.failure, SerializationError)


class Slow(Processor[str, int, None, None]):
    """Takes long for each record."""

    begun = threading.Event()
    records = 0

    def process(self, record: Record[str, int]) -> None:
        self.begun.set()
        Slow.records += 1
        # Time passes: that is the test.
        time.sleep(0.02)


def test_filling_ends_early_when_the_client_is_to_stop(log: Log) -> None:
    log.create("prices", "sales", "sold")
    app = shop(log)
    app.add_global_store(Stores.key_value_store("s", str, int), "more", Slow, key=str, value=int)
    log.create("more")
    log.write("more", [(f"item{n}", n, 1_000) for n in range(10_000)])
    streams = Streams(app, broker=log.broker)
    stop = threading.Event()
    running_client = threading.Thread(target=streams.run, kwargs={"stop": stop})
    running_client.start()
    assert Slow.begun.wait(TIMEOUT_S)
    stop.set()
    running_client.join(TIMEOUT_S)
    assert streams.state is ClientState.NOT_RUNNING
    assert Slow.records < 10_000


def test_after_the_end_the_store_is_not_there(log: Log) -> None:
    log.create("prices", "sales", "sold")
    streams = log.start(shop(log))
    running(streams)
    streams.close()
    with pytest.raises(StateError, match="is not open"):
        streams.store("prices-store").get("tea")


class Doubling(Processor[str, int, None, None]):
    """Fills a store with twice what it is told."""

    def init(self, context: ProcessorContext[None, None]) -> None:
        self._store = context.store("doubled")

    def process(self, record: Record[str, int]) -> None:
        self._store.put(record.key, None if record.value is None else 2 * record.value)


class Reading(Processor[str, str, str, str]):
    """Looks items up in the store, and tries to write to it."""

    def process(self, record: Record[str, str]) -> None:
        store = self.context.store("doubled")
        everything = ",".join(f"{key}:{value}" for key, value in store.all())
        self.context.forward(record.with_value(f"{store.get(record.value)} of {everything}"))
        with pytest.raises(StateError, match="can only be read"):
            store.put(record.value, 1)


def doubling(log: Log) -> App:
    app = log.app("doubling")
    app.add_global_store(Stores.key_value_store("doubled", str, int), "prices", Doubling, key=str, value=int)
    app.stream("sales", key=str, value=str).process(Reading, key=str, value=str).to("sold")
    return app


def test_a_processor_fills_a_global_store_also_after_its_loss(log: Log) -> None:
    log.create("prices", partitions=2)
    log.create("sales", "sold")
    write_prices(log, milk=1, tea=3)
    log.write("sales", [("ann", "tea", 2_000)], value=str)
    run_to_the_end(log, doubling(log))
    assert log.table("sold", value=str) == {"ann": "6 of milk:2,tea:6"}
    folder = next((log.path / "state" / "doubling").glob("global-*"))
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    write_prices(log, milk=None)
    log.write("sales", [("bob", "tea", 2_001)], value=str)
    run_to_the_end(log, doubling(log))
    assert log.table("sold", value=str)["bob"] == "6 of tea:6"


class Noting(Processor[str, int, None, None]):
    """Notes which keys it was given."""

    keys: ClassVar[list[str | None]] = []

    def process(self, record: Record[str, int]) -> None:
        self.keys.append(record.key)


def test_a_processor_is_given_records_without_a_key_at_the_start_and_later(log: Log) -> None:
    """Java leaves them out at the start alone."""
    Noting.keys = []
    log.create("prices")
    log.write("prices", [(None, 1, 1_000), ("tea", 3, 1_001)])
    app = log.app("noting")
    app.add_global_store(Stores.key_value_store("noted", str, int), "prices", Noting, key=str, value=int)
    streams = log.start(app)
    running(streams)
    assert Noting.keys == [None, "tea"]
    log.write("prices", [(None, 2, 1_002)])
    eventually(lambda: Noting.keys == [None, "tea", None], "the later one is there, too")


def test_global_stores_alone_make_an_application(log: Log) -> None:
    log.create("prices")
    write_prices(log, tea=3)
    app = log.app("alone")
    app.global_table("prices", key=str, value=int, name="rows")
    streams = log.start(app)
    assert streams.state is ClientState.RUNNING
    assert rows(streams, "rows") == {"tea": 3}
    assert streams.close(10_000)


def test_a_method_that_only_stores_of_windows_have_is_refused(log: Log) -> None:
    log.create("prices", "sales", "sold")
    streams = log.start(shop(log))
    with pytest.raises(StateError) as refused:
        streams.store("prices-store").kept_from_ms("tea")
    assert (
        refused.value.what
        == "store prices-store does not have kept_from_ms: it is a timestamped-key-value store"
    )


def test_readers_of_other_threads_never_see_half_a_change(log: Log) -> None:
    """Queries read while the global thread writes; each sees the rows as of some moment."""
    log.create("prices", "sales", "sold")
    write_prices(log, **{f"item{n}": 0 for n in range(50)})
    streams = log.start(shop(log, persistent=False))
    running(streams)
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        store = streams.store("prices-store")
        while not done.is_set():
            found = store.all()
            if [key for key, _ in found] != sorted(f"item{n}" for n in range(50)):
                wrong.append(found)
            if store.get("item7") is None:
                wrong.append("item7")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for round_ in range(1, 31):
        write_prices(log, **{f"item{n}": round_ for n in range(50)})
    eventually(partial(lambda: set(rows(streams).values()) == {30}), "the last round is there")
    done.set()
    for thread in readers:
        thread.join()
    assert not wrong

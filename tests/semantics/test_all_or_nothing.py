"""A record that a step cannot take is in none of the entries that it would have changed, and the others' stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
)
from pystreams.handlers import ErrorContext, Response
from pystreams.serde import Serde
from pystreams.serde.subscriptions import combined_key
from pystreams.state.formats import pack_int64

CONTINUE: dict[str, Any] = {"processing_exception_handler": "continue"}


def write(text: str) -> bytes:
    """Some texts are too long for this serde."""
    if len(text) > 3:
        raise ValueError(f"{text} is too long")
    return text.encode()


SHORT = Serde.of(write, bytes.decode)
#: One that is cached as objects.
SHORT_OBJECTS = Serde.of(write, bytes.decode, immutable=True)


def add(text: str, value: str) -> str:
    return text + value


def add_up_to_three(text: str, value: str) -> str:
    if len(text + value) > 3:
        raise ValueError(f"{text} has no room for {value}")
    return text + value


#: What fails: the function, or what writes its result.
FAILING: dict[str, dict[str, Any]] = {
    "aggregator": {"aggregator": add_up_to_three, "value": str},
    "serde": {"aggregator": add, "value": SHORT},
    "serde of objects": {"aggregator": add, "value": SHORT_OBJECTS},
}
STORES: dict[str, dict[str, Any]] = {
    "cached": {"cached": True},
    "uncached": {"cached": False},
    "in memory": {"cached": False, "persistent": False},
}
FORMATS = {"plain": "DEFAULT", "with headers": "HEADERS"}


@pytest.fixture(params=FAILING)
def failing(request: pytest.FixtureRequest) -> dict[str, Any]:
    return FAILING[request.param]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> dict[str, Any]:
    return STORES[request.param]


@pytest.fixture(params=FORMATS)
def config(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**CONTINUE, "dsl_store_format": FORMATS[request.param]}


def aggregated(
    windows: Any,
    config: dict[str, Any],
    records: list[tuple[str, int]],
    *mergers: Callable[..., str],
    aggregator: Callable[..., str],
    **store: Any,
) -> tuple[dict[str, str], list[tuple[str, str | None]], int]:
    """What the windows of one key hold in the end, what was told of them, and how many records were left out."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    table = grouped.aggregate(str, aggregator, *mergers, name="windows", **store)
    told = table.to_stream(lambda window, _: str(window), key=str).map_values(lambda text: text, value=str)
    told.to("out")
    with TopologyTestDriver(builder, config) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, timestamp in records:
            topic.pipe_input("a", value, timestamp=timestamp)
        with driver.store("windows").all() as entries:
            held = {str(window): getattr(found, "value", found) for window, found in entries}
        out = driver.create_output_topic("out", key=str, value=str).read_key_values()
        return held, out, driver.dropped_records


def last_told(out: list[tuple[str, str | None]]) -> dict[str, str]:
    return {window: text for window, text in dict(out).items() if text is not None}


def test_sessions_stay_whose_common_result_cannot_be_had(
    failing: dict[str, Any], store: dict[str, Any], config: dict[str, Any]
) -> None:
    records = [("x", 0), ("y", 5), ("v", 20), ("w", 22), ("bad", 12), ("z", 40)]
    windows = SessionWindows.of(10, grace=100)
    held, out, dropped = aggregated(windows, config, records, add, **failing, **store)
    shown = {window: getattr(text, "aggregation", text) for window, text in held.items()}
    assert shown == {"a@0/5": "xy", "a@20/22": "vw", "a@40/40": "z"}
    assert last_told(out) == shown
    assert dropped == 1


def test_a_record_comes_into_all_hopping_windows_or_none(
    failing: dict[str, Any], store: dict[str, Any], config: dict[str, Any]
) -> None:
    # The first window of the last record is empty, the second one is full.
    records = [("x", 15), ("y", 16), ("z", 17), ("b", 12)]
    windows = TimeWindows.hopping(10, advance=5, grace=100)
    held, out, dropped = aggregated(windows, config, records, **failing, **store)
    assert held == {"a@10/20": "xyz", "a@15/25": "xyz"}
    assert last_told(out) == held
    assert dropped == 1


def test_windows_that_close_have_a_record_or_not(failing: dict[str, Any]) -> None:
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=str).group_by_key()
    grouped = grouped.windowed_by(TimeWindows.hopping(10, advance=5, grace=10))
    table = grouped.emit_strategy(EmitStrategy.on_window_close()).aggregate(str, **failing)
    table.to_stream(lambda window, _: str(window), key=str).map_values(str, value=str).to("out")
    with TopologyTestDriver(builder, CONTINUE) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, timestamp in [("x", 11), ("y", 12), ("z", 13), ("b", 8), ("w", 50)]:
            topic.pipe_input("a", value, timestamp=timestamp)
        out = driver.create_output_topic("out", key=str, value=str).read_key_values()
        assert out == [("a@5/15", "xyz"), ("a@10/20", "xyz")]


@pytest.mark.parametrize("method", ["left_join", "outer_join"])
def test_a_record_that_waits_for_a_match_stays_where_the_joiner_fails_for_it(method: str) -> None:
    def join(left: str | None, right: str | None) -> str:
        if right == "bad":
            raise ValueError("I do not like it")
        return f"{left}+{right}"

    builder = StreamsBuilder()
    left, right = (builder.stream(name, key=str, value=str) for name in ("left", "right"))
    getattr(left, method)(right, join, windows=JoinWindows.of(10), value=str).to("out")
    with TopologyTestDriver(builder, CONTINUE) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("left", "right")}
        for name, value, timestamp in [("left", "x", 0), ("right", "bad", 5), ("left", "later", 100)]:
            topics[name].pipe_input("a", value, timestamp=timestamp)
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["x+None"]


def test_who_cannot_get_a_changed_row_keeps_nobody_else_from_it() -> None:
    unreadable: set[bytes] = set()

    def read(data: bytes) -> str:
        if data in unreadable:
            raise ValueError(f"{data!r} is not a key")
        return data.decode()

    asked: list[ErrorContext] = []

    def handler(context: ErrorContext) -> Response:
        asked.append(context)
        return Response.DEAD_LETTER

    builder = StreamsBuilder()
    orders = builder.table("orders", key=Serde.of(str.encode, read), value=str)
    customers = builder.table("customers", key=str, value=str)
    joined = orders.join(
        customers, lambda one, two: f"{one}+{two}", foreign_key=lambda order: order, value=str
    )
    joined.to_stream().to("out")
    config: dict[str, Any] = {
        "processing_exception_handler": handler,
        "errors_dead_letter_queue_topic_name": "dead",
    }
    with TopologyTestDriver(builder, config) as driver:
        rows = driver.create_input_topic("orders", key=str, value=str)
        for key in ("o1", "o2", "o3"):
            rows.pipe_input(key, "ann", timestamp=1)
        unreadable.add(b"o2")
        driver.create_input_topic("customers", key=str, value=str).pipe_input("ann", "Ann", timestamp=9)
        out = driver.create_output_topic("out", key=str, value=str).read_key_values()
        assert out == [("o1", "ann+Ann"), ("o3", "ann+Ann")]
        (context,) = asked
        assert (context.topic, context.timestamp, context.raw_key) == ("customers", 9, b"o2")
        assert [record.key for record in driver.read_raw("dead")] == [b"o2"]


def test_a_subscription_of_a_newer_version_keeps_nobody_else_from_hearing_of_a_changed_row() -> None:
    builder = StreamsBuilder()
    orders, customers = (builder.table(name, key=str, value=str) for name in ("orders", "customers"))
    joined = orders.join(
        customers, lambda one, two: f"{one}+{two}", foreign_key=lambda order: order, value=str, name="joined"
    )
    joined.to_stream().to("out")
    topology = builder.build()
    (name,) = (spec.name for spec in topology.build("a").stores if "SUBSCRIPTION" in spec.name.upper())
    with TopologyTestDriver(topology, {**CONTINUE, "statestore_cache_max_bytes": 0}) as driver:
        rows = driver.create_input_topic("orders", key=str, value=str)
        for key in ("o1", "o2", "o3"):
            rows.pipe_input(key, "ann", timestamp=1)
        unknown_version = b"\x7f\x02"
        driver.store(name).overlay.put(combined_key(b"ann", b"o2"), pack_int64(1) + unknown_version)
        driver.create_input_topic("customers", key=str, value=str).pipe_input("ann", "Ann", timestamp=9)
        out = driver.create_output_topic("out", key=str, value=str).read_key_values()
        assert out == [("o1", "ann+Ann"), ("o3", "ann+Ann")]
        assert driver.dropped_records == 1

"""What a processor does wrong is told before a record is lost, with the step, the store and what to do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pystreams import (
    App,
    FixedKeyProcessor,
    Processor,
    PunctuationType,
    Record,
    Stores,
    TopologyError,
    TopologyTestDriver,
    ValueTransformer,
)
from pystreams.errors import ProcessingError, SchemaRegistryUnavailableError, StreamsError
from pystreams.serde import Serde
from pystreams.testing import play

STREAM = PunctuationType.STREAM_TIME
INPUT = ("in", "k", "v", 1)


class NoProcess(Processor[Any, Any, Any, Any]):
    """Forgets it."""


class Async(Processor[Any, Any, Any, Any]):
    async def process(self, record: Any) -> None:  # type: ignore[override]
        self.context.forward(record)


class Yielding(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> Any:
        yield record


class AsyncInit(Processor[Any, Any, Any, Any]):
    async def init(self, context: Any) -> None:  # type: ignore[override]
        self.context = context

    def process(self, record: Any) -> None:
        """Nothing."""


class KeyAndValue(Processor[Any, Any, Any, Any]):
    def process(self, key: Any, value: Any) -> None:  # type: ignore[override]
        """As before KIP-478."""


PROCESSORS = [
    (NoProcess, "NoProcess, the processor of p, has no method process"),
    (Async, "step p got an async function"),
    (Yielding, "step p got a function with yield"),
    (AsyncInit, "step p got an async function"),
    (KeyAndValue, "step p got a function that takes 2 arguments"),
]


@pytest.mark.parametrize(("supplier", "told"), PROCESSORS, ids=[made.__name__ for made, _ in PROCESSORS])
@pytest.mark.parametrize("method", ["process", "process_values"])
def test_a_processor_whose_process_would_not_run_is_refused(supplier: Any, told: str, method: str) -> None:
    app = App("a")
    getattr(app.stream("in", key=str, value=str), method)(supplier, step="p").to("out", key=str, value=str)
    with pytest.raises(TopologyError, match=told):
        play(app, INPUT)


class NoTransform(ValueTransformer[Any, Any, Any]):
    """Forgets it."""


class YieldingTransform(ValueTransformer[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        yield value


class OneArgument(ValueTransformer[Any, Any, Any]):
    def transform(self, value: Any) -> Any:  # type: ignore[override]
        return value


@pytest.mark.parametrize(
    ("supplier", "told"),
    [
        (NoTransform, "has no method transform"),
        (YieldingTransform, "got a function with yield"),
        (OneArgument, "takes 1 argument"),
        (KeyAndValue, "KeyAndValue, the transformer of t, has no method transform"),
    ],
)
def test_a_transformer_whose_transform_would_not_run_is_refused(supplier: Any, told: str) -> None:
    app = App("a")
    table = app.table("in", key=str, value=str)
    table.transform_values(supplier, value=str, step="t").to_stream().to("out")
    with pytest.raises(TopologyError, match=told):
        play(app, INPUT)


def generates(value: str) -> Any:
    yield value


@pytest.mark.parametrize("method", ["filter", "filter_not", "peek", "foreach"])
def test_a_function_with_yield_where_nothing_asks_for_what_it_gives_is_refused(method: str) -> None:
    app = App("a")
    with pytest.raises(TopologyError, match=f"{method} .* got a function with yield") as caught:
        getattr(app.stream("in", key=str, value=str), method)(generates)
    assert "test_mistakes_in_processors.py" in caught.value.where
    with pytest.raises(TopologyError, match="with yield"):
        app.stream("in2", key=str, value=str).split().branch(generates)
    with pytest.raises(TopologyError, match="with yield"):
        app.table("in3", key=str, value=str).filter(generates)
    app.stream("in4", key=str, value=str).flat_map_values(generates).to("out")


async def later(_time_ms: int) -> None:
    """Nothing."""


@pytest.mark.parametrize(
    ("punctuator", "told"), [(later, "got an async function"), (None, "got None for a punctuator")]
)
def test_a_punctuator_that_would_not_run_is_refused(punctuator: Any, told: str) -> None:
    class Ticks(Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            context.schedule(10, STREAM, punctuator)

        def process(self, record: Any) -> None:
            """Nothing."""

    app = App("a")
    app.stream("in", key=str, value=str).process(Ticks, step="p").to("out")
    with pytest.raises(ProcessingError, match=f"init of processor p failed: processor p {told}"):
        play(app, INPUT)


class Reminding(FixedKeyProcessor[str, str, str]):
    """Forwards the last record once more, or one of its own, when time goes on."""

    kept: Record[str, str] | None = None
    own = False

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(10, STREAM, self.remind)

    def process(self, record: Record[str, str]) -> None:
        self.kept = record

    def remind(self, time_ms: int) -> None:
        if self.own:
            self.context.forward(Record("another", "v", time_ms))
        elif self.kept is not None:
            again = self.kept.with_value("again").with_timestamp(time_ms).with_headers((("h", b"1"),))
            self.context.forward(again)


class OfItsOwn(Reminding):
    own = True


class AnotherKey(Reminding):
    def remind(self, time_ms: int) -> None:
        assert self.kept is not None
        self.context.forward(self.kept.with_key("another"))


def test_a_punctuator_of_process_values_forwards_what_process_was_given() -> None:
    app = App("a")
    app.stream("in", key=str, value=str).process_values(Reminding, value=str).to("out")
    with TopologyTestDriver(app) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=12)
        record = driver.create_output_topic("out", key=str, value=str).read_record()
        assert record == Record("k", "again", 12, (("h", b"1"),))


@pytest.mark.parametrize("supplier", [OfItsOwn, AnotherKey])
def test_it_cannot_forward_other_keys(supplier: Any) -> None:
    """Downstream they would be in the wrong partition."""
    app = App("a")
    app.stream("in", key=str, value=str).process_values(supplier, value=str, step="p").to("out")
    with pytest.raises(ProcessingError, match="processor p forwarded a record of its own in punctuation"):
        play(app, INPUT)


def using(store: Any, use: Any) -> App:
    class Uses(Processor[str, str, str, str]):
        def process(self, record: Any) -> None:
            use(self.context.store(store.name))

    app = App("a")
    app.stream("in", key=str, value=str).process(Uses, stores=[store], step="p").to("out")
    return app


NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(
    ("kind", "use", "told"),
    [
        ("kv", lambda s: s.put("k", 5), "store s takes values of type str, not this int"),
        ("kv", lambda s: s.put_if_absent("k", 5), "store s takes values of type str, not this int"),
        ("kv", lambda s: s.put_all({"ab": "v"}), r"put_all of store s takes pairs \(key, value\)"),
        ("kv", lambda s: s.range(1, 2), "a key of type int does not fit store s, whose keys are str"),
        ("kv", lambda s: s.prefix_scan(1), "a key of type int does not fit store s, whose keys are str"),
        ("ts", lambda s: s.put("k", "vw"), r"store s takes \(value, timestamp\) .* the timestamp is missing"),
        ("ts", lambda s: s.put("k", (5, 1)), "store s takes .* with values of type str, not this tuple"),
        ("ts", lambda s: s.put("k", ("v", NOW)), "store s takes .* with values of type str, not this tuple"),
        ("window", lambda s: s.put("k", 5, 0), "store s takes values of type str, not this int"),
        ("window", lambda s: s.put("k", "v", NOW), "times of store s are whole numbers of milliseconds"),
        ("window", lambda s: s.fetch("k", NOW), "times of store s are whole numbers of milliseconds"),
        ("window", lambda s: s.fetch("k", 0, NOW), "times of store s are whole numbers of milliseconds"),
        ("window", lambda s: s.fetch_all(0, NOW), "times of store s are whole numbers of milliseconds"),
        ("session", lambda s: s.put("k", "v"), r"a session of store s must be a Windowed\(key, start, end\)"),
        ("session", lambda s: s.put(("k", 1, NOW), "v"), "times of store s are whole numbers"),
        ("session", lambda s: s.put(("k", 1, 2), 5), "store s takes values of type str, not this int"),
        ("versioned", lambda s: s.put("k", 5, 1), "store s takes values of type str, not this int"),
        ("versioned", lambda s: s.get("k", NOW), "times of store s are whole numbers of milliseconds"),
        ("list", lambda s: s.put("k", 5), "store s takes values of type str, not this int"),
    ],
    ids=range(19),
)
def test_a_store_that_is_used_wrongly_says_what_it_takes(
    kind: str, use: Any, told: str, persistent: bool, cached: bool
) -> None:
    make: dict[str, Any] = {
        "kv": Stores.key_value_store,
        "ts": Stores.timestamped_key_value_store,
        "window": Stores.window_store,
        "session": Stores.session_store,
        "versioned": Stores.versioned_store,
        "list": Stores.list_store,
    }
    more: dict[str, dict[str, int]] = {
        "window": {"size": 5, "retention": 10},
        "session": {"retention": 10},
        "versioned": {"history": 10},
    }
    switches = {} if kind in ("versioned", "list") else {"cached": cached}
    store = make[kind]("s", str, str, persistent=persistent, **more.get(kind, {}), **switches)
    with pytest.raises(ProcessingError, match=told) as caught:
        play(using(store, use), INPUT)
    assert "step p raised TypeError" in str(caught.value)
    assert "in-0 offset 0" in caught.value.where


def test_no_handler_is_asked_where_a_key_cannot_be_written_for_the_registrys_sake() -> None:
    def away(_key: Any) -> bytes:
        raise SchemaRegistryUnavailableError("the schema registry cannot be reached")

    keys = Serde.of(away, bytes.decode)
    app = using(Stores.key_value_store("s", keys, str), lambda s: s.put("k", "v"))
    with pytest.raises(StreamsError) as caught:
        play_with(app, processing_exception_handler="continue")
    assert isinstance(caught.value, SchemaRegistryUnavailableError)


def play_with(app: App, **config: Any) -> None:
    with TopologyTestDriver(app, config) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda c, r: c.store(None), "None does not describe a store"),
        (lambda c, r: c.forward(r, 5), "forwarded to 5, which is not a child of it"),
    ],
)
def test_a_context_that_is_used_wrongly_says_so(use: Any, told: str) -> None:
    class Uses(Processor[str, str, str, str]):
        def process(self, record: Any) -> None:
            use(self.context, record)

    app = App("a")
    app.stream("in", key=str, value=str).process(Uses, step="p").to("out")
    with pytest.raises(ProcessingError, match=told):
        play(app, INPUT)

"""A processor wrapper sees every step as Java's does, and can do with it what it likes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pystreams import (
    App,
    Change,
    ConfigError,
    Processor,
    ProcessorWrapper,
    Record,
    StreamsBuilder,
    StreamsConfig,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from pystreams.errors import ProcessingError
from pystreams.handlers import ErrorContext, Response
from pystreams.processor import ProcessorContext
from pystreams.state.stores.factory import Stores
from pystreams.topology.wrapping import AnySupplier, ProcessorSupplier
from tests.conformance import golden, runner
from tests.conformance.builder import ScenarioBuilder
from tests.conformance.compare import difference

#: Of recorded scenarios: what a wrapper of Java 4.3.1 was asked for: name of the step, "any" or "fixed" (key), stores.
JAVA = json.loads((Path(__file__).parent / "java" / "wrapped_steps.json").read_text(encoding="utf-8"))

CASES = {case.name: case for case in golden.cases() if case.name in JAVA}

AnyProcessor = Processor[Any, Any, Any, Any]


class Around(AnyProcessor):
    """Hands everything on."""

    def __init__(self, inner: AnyProcessor) -> None:
        self.inner = inner

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self.inner.init(context)

    def process(self, record: Record[Any, Any]) -> None:
        self.inner.process(record)

    def close(self) -> None:
        self.inner.close()


class Noting(ProcessorWrapper):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []

    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        return self._note(name, "any", supplier)

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        return self._note(name, "fixed", supplier)

    def _note(self, name: str, kind: str, supplier: ProcessorSupplier) -> AnySupplier:
        stores = sorted(store.name for store in supplier.stores())
        self.asked.append([name, kind, stores] if stores else [name, kind])
        return supplier


def around_all(_: str, supplier: ProcessorSupplier) -> AnySupplier:
    return lambda: Around(supplier())


def run(program: StreamsBuilder | Topology, *records: tuple[Any, Any, int], **settings: Any) -> list[Any]:
    """What comes out at "out" of records that go in at "in"."""
    with TopologyTestDriver(program, {"application_id": "wrapped", **settings}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value, timestamp in records:
            topic.pipe_input(key, value, timestamp=timestamp)
        found = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in found]


@pytest.mark.parametrize("name", JAVA)
def test_every_step_is_wrapped_as_in_java(name: str) -> None:
    scenario = CASES[name].scenario
    wrapper = Noting()
    plain = ScenarioBuilder(scenario["config"]).build(scenario["steps"])
    wrapped = plain.wrapped(wrapper)
    assert wrapper.asked == JAVA[name]
    assert wrapped.describe() == plain.describe()


@pytest.mark.parametrize("name", JAVA)
def test_processors_around_every_step_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = CASES[name].scenario
    plain = runner.run(scenario)
    config_of = runner.config_of
    monkeypatch.setattr(
        runner, "config_of", lambda config: config_of(config).override({"processor_wrapper": around_all})
    )
    assert difference(plain, runner.run(scenario)) is None


def counting(counts: dict[str, int]) -> Callable[[str, ProcessorSupplier], AnySupplier]:
    class Counting(Around):
        def __init__(self, name: str, inner: AnyProcessor) -> None:
            super().__init__(inner)
            self.name = name

        def process(self, record: Record[Any, Any]) -> None:
            counts[self.name] = counts.get(self.name, 0) + 1
            super().process(record)

    return lambda name, supplier: lambda: Counting(name, supplier())


def words() -> App:
    app = App("words")
    lines = app.stream("in", key=str, value=str)
    some = lines.flat_map_values(str.split, step="split").filter(lambda word: word != "a", step="no-a")
    some.to("out")
    return app


def test_a_function_may_be_the_wrapper() -> None:
    counts: dict[str, int] = {}
    found = run(words(), ("k", "a b", 1), ("k", "c", 2), processor_wrapper=counting(counts))
    assert found == [("k", "b", 1), ("k", "c", 2)]
    assert counts == {"split": 2, "no-a": 3}


def test_a_record_between_tables_has_a_change_as_its_value() -> None:
    seen: list[Any] = []

    class Looking(Around):
        def process(self, record: Record[Any, Any]) -> None:
            seen.append(record.value)
            super().process(record)

    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str, name="rows")
    table.map_values(str.upper, step="upper").to_stream(step="stream").to("out")
    wrap = lambda name, supplier: lambda: Looking(supplier()) if name == "upper" else supplier()  # noqa: E731
    found = run(builder, ("k", "a", 1), ("k", "b", 2), processor_wrapper=wrap)
    assert found == [("k", "A", 1), ("k", "B", 2)]
    assert seen == [Change("a", None), Change("b", None)]


class Shouting(Around):
    """Changes what the step forwards, by a context of its own."""

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        outer = context

        class Loud:
            def __getattr__(self, name: str) -> Any:
                return getattr(outer, name)

            def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
                outer.forward(record.with_value(f"{record.value}!"), child)

        self.inner.init(cast(Any, Loud()))


def test_time_and_headers_that_are_changed_before_a_step_are_those_of_its_record() -> None:
    class Later(Around):
        def process(self, record: Record[Any, Any]) -> None:
            self.inner.process(record.with_timestamp(record.timestamp + 100).with_headers((("by", b"me"),)))

    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.reduce(max, name="most", step="reduce").to_stream().to("out")
    wrap = lambda name, supplier: lambda: Later(supplier()) if name == "reduce" else supplier()  # noqa: E731
    with TopologyTestDriver(builder, {"application_id": "wrapped", "processor_wrapper": wrap}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a", timestamp=1)
        (out,), (logged,) = map(driver.read_raw, ("out", "wrapped-most-changelog"))
        assert (out.timestamp, out.headers) == (101, (("by", b"me"),))
        assert logged.timestamp == 101


def test_what_a_step_forwards_can_be_caught_with_a_context_of_ones_own() -> None:
    wrap = lambda name, supplier: lambda: Shouting(supplier())  # noqa: E731
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(str.upper).map_values(str.lower).to("out")
    assert run(builder, ("k", "a", 1), processor_wrapper=wrap) == [("k", "a!!", 1)]


def test_what_is_forwarded_behind_a_table_must_be_a_change() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to_table().to_stream().to("out")
    wrap = lambda name, supplier: lambda: Shouting(supplier())  # noqa: E731
    with pytest.raises(ProcessingError, match="between steps of tables goes a Change, not str"):
        run(builder, ("k", "a", 1), processor_wrapper=wrap)


def test_a_branch_still_forwards_to_the_child_that_it_chooses() -> None:
    builder = StreamsBuilder()
    split = builder.stream("in", key=str, value=str).split(step="by-")
    split.branch(lambda value: value == "a", name="a").map_values(lambda value: "first", value=str).to("out")
    split.default(name="rest").map_values(lambda value: "rest", value=str).to("out")
    found = run(builder, ("k", "a", 1), ("k", "b", 2), processor_wrapper=around_all)
    assert [value for _, value, _ in found] == ["first", "rest"]


def test_a_step_can_be_replaced_altogether() -> None:
    class Other(AnyProcessor):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record.with_value("other"))

    wrap = lambda name, supplier: Other if name == "split" else supplier  # noqa: E731
    assert run(words(), ("k", "a b", 1), processor_wrapper=wrap) == [("k", "other", 1)]


def test_what_a_step_raises_goes_through_the_processors_around_it_and_then_to_the_handler() -> None:
    passed: list[str] = []
    asked: list[tuple[str, str]] = []

    class Watching(Around):
        def process(self, record: Record[Any, Any]) -> None:
            try:
                super().process(record)
            except Exception as error:
                passed.append(type(error).__name__)
                raise

    def handler(context: ErrorContext) -> Response:
        asked.append((context.step, type(context.exception).__name__))
        return Response.CONTINUE

    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(lambda v: str(1 // len(v)), step="m").to("out")
    found = run(
        builder,
        ("k", "", 1),
        ("k", "x", 2),
        processor_wrapper=lambda _, supplier: lambda: Watching(supplier()),
        processing_exception_handler=handler,
    )
    assert found == [("k", "1", 2)]
    assert passed == ["ZeroDivisionError"]
    assert asked == [("m", "ZeroDivisionError")]


def test_a_wrapper_can_swallow_what_a_step_raises() -> None:
    class Deaf(Around):
        def process(self, record: Record[Any, Any]) -> None:
            try:
                super().process(record)
            except ValueError:
                self.context.forward(record.with_value("swallowed"))

    def refuse(value: str) -> list[str]:
        raise ValueError(value)

    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).flat_map_values(refuse, value=str).to("out")
    wrap = lambda _, supplier: lambda: Deaf(supplier())  # noqa: E731
    assert run(builder, ("k", "a", 1), processor_wrapper=wrap) == [("k", "swallowed", 1)]


def test_a_wrapper_adds_stores_and_its_processors_use_them() -> None:
    class Remembering(Around):
        @classmethod
        def stores(cls) -> list[Any]:
            return [Stores.key_value_store("seen", str, int)]

        def init(self, context: ProcessorContext[Any, Any]) -> None:
            super().init(context)
            self.store = context.store("seen")

        def process(self, record: Record[Any, Any]) -> None:
            self.store.put(record.key, (self.store.get(record.key) or 0) + 1)
            super().process(record)

    class Supplier:
        def __init__(self, inner: ProcessorSupplier) -> None:
            self.inner = inner

        def stores(self) -> list[Any]:
            return [*self.inner.stores(), *Remembering.stores()]

        def __call__(self) -> AnyProcessor:
            return Remembering(self.inner())

    app = App("words", processor_wrapper=lambda n, s: Supplier(s) if n == "split" else s)
    app.stream("in", key=str, value=str).flat_map_values(str.split, step="split").to("out")
    assert "Processor: split (stores: [seen])" in app.build().describe()
    with TopologyTestDriver(app) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a b")
        assert driver.store("seen").get("k") == 1


def test_a_store_that_a_wrapper_gives_takes_the_place_of_the_steps_own() -> None:
    class InMemory(ProcessorWrapper):
        def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
            return Copied(supplier)

    class Copied:
        def __init__(self, supplier: ProcessorSupplier) -> None:
            self.supplier = supplier

        def __call__(self) -> AnyProcessor:
            return self.supplier()

        def stores(self) -> Iterator[Any]:
            return (replace(store, persistent=False) for store in self.supplier.stores())

    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count(name="n").to_stream().map_values(str).to(
        "out"
    )
    topology = builder.build().wrapped(InMemory)
    assert topology.stores["n"].persistent is False
    assert [value for _, value, _ in run(topology, ("k", "a", 1), ("k", "b", 2))] == ["1", "2"]


def test_it_may_be_named_by_where_it_is_imported_from() -> None:
    config = StreamsConfig.of(
        application_id="a", processor_wrapper="pystreams.topology.wrapping:ProcessorWrapper"
    )
    assert config.processor_wrapper is ProcessorWrapper
    for wrong in ("nowhere:Wrapper", "pystreams.topology.wrapping:Wrapper", "Wrapper"):
        with pytest.raises(ConfigError, match="MODULE:NAME"):
            StreamsConfig.of(application_id="a", processor_wrapper=wrong)


@pytest.mark.parametrize("wrong", [3, object, "text", Around, lambda name: name])
def test_what_is_no_wrapper_is_refused(wrong: Any) -> None:
    with pytest.raises((ConfigError, TopologyError), match="processor_wrapper"):
        words().build().wrapped(wrong)


def test_a_wrapper_that_returns_no_supplier_is_reported() -> None:
    with pytest.raises(TopologyError, match="returned None for split, which does not make processors"):
        words().build().wrapped(lambda name, supplier: None)


def failing(*_: Any) -> Any:
    raise ValueError("boom")


def test_a_wrapper_that_raises_is_named() -> None:
    with pytest.raises(
        TopologyError, match="the processor wrapper of split raised ValueError: boom"
    ) as raised:
        words().build().wrapped(failing_wrapper)
    assert "failing_wrapper" in str(raised.value.where)


def failing_wrapper(name: str, supplier: ProcessorSupplier) -> AnySupplier:
    return failing(name, supplier)


def test_a_supplier_that_raises_is_named() -> None:
    with pytest.raises(TopologyError, match="the supplier of split raised ValueError: boom"):
        run(words(), processor_wrapper=lambda name, supplier: failing)


def test_a_class_that_needs_arguments_is_reported() -> None:
    class Needy(ProcessorWrapper):
        def __init__(self, what: str) -> None: ...

    with pytest.raises(ConfigError, match="give an instance of it"):
        words().build().wrapped(Needy)


def test_topologies_written_by_hand_are_wrapped_when_they_run_but_not_what_fills_read_only_stores() -> None:
    class Pass(AnyProcessor):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record)

    def topology() -> Topology:
        made = Topology().add_source("source", "in", key=str, value=str)
        made.add_processor("pass", Pass, "source")
        made.add_read_only_state_store(
            Stores.key_value_store("rows", str, str), "rows-in", "rows", "fill", Pass, key=str, value=str
        )
        made.add_global_store(
            Stores.key_value_store("all", str, str), "all-in", "all", "fill-all", Pass, key=str, value=str
        )
        return made.add_sink("sink", "out", "pass", key=str, value=str)

    counts: dict[str, int] = {}
    assert run(topology(), ("k", "a", 1), processor_wrapper=counting(counts)) == [("k", "a", 1)]
    assert counts == {"pass": 1}
    noting = Noting()
    wrapped = topology().wrapped(noting)
    assert noting.asked == [["pass", "any"]]
    assert wrapped.wrapped(noting) is wrapped


def test_at_most_one_processor_of_a_step_is_initialized_in_a_task() -> None:
    class Twice(Around):
        def __init__(self, supplier: ProcessorSupplier) -> None:
            super().__init__(supplier())
            self.other = supplier()

        def init(self, context: ProcessorContext[Any, Any]) -> None:
            super().init(context)
            self.other.init(context)

    with pytest.raises(ProcessingError, match="two processors of the step"):
        run(words(), processor_wrapper=lambda _, supplier: lambda: Twice(supplier))


def test_a_processor_that_is_not_initialized_says_so() -> None:
    class Forgetful(Around):
        def init(self, context: ProcessorContext[Any, Any]) -> None:
            self.context = context

    with pytest.raises(ProcessingError, match="must pass init on"):
        run(words(), ("k", "a", 1), processor_wrapper=lambda _, supplier: lambda: Forgetful(supplier()))


def test_the_fingerprint_says_what_is_wrapped_not_by_what() -> None:
    plain = words().build()
    assert plain.wrapped(around_all).build("words").fingerprint == plain.build("words").fingerprint

"""Whatever function of the program raises, and wherever: the record and the step are named, and nothing is lost."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams import Processor, PunctuationType
from pystreams.app import App
from pystreams.dsl.stream import KStream
from pystreams.dsl.windows import TimeWindows
from pystreams.errors import ProcessingError
from pystreams.record import Record
from tests.live.bad_input.kit import dead_letters, failure_of, told
from tests.live.support import Log, caught_up, eventually, run_to_the_end

RECORDS = [("k", value, 10 * value) for value in (1, 2, 3, 4, 5)]


class Trap:
    """A function that raises at 3, until it is mended."""

    def __init__(self, *, armed: bool = True) -> None:
        self.armed = armed

    def __call__(self, value: int) -> int:
        if self.armed and value == 3:
            raise ValueError("three is too many")
        return value


class Doubling(Processor[str, int, str, int]):
    """A processor that steps into the trap."""

    def __init__(self, trap: Trap) -> None:
        self.trap = trap

    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record.with_value(2 * self.trap(record.value)))


class Punctual(Processor[str, int, str, int]):
    """Forwards the latest value every 10 ms of stream time; the trap is in the punctuator."""

    def __init__(self, trap: Trap) -> None:
        self.trap = trap
        self.latest = 0

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule(10, PunctuationType.STREAM_TIME, self.punctuate)

    def process(self, record: Record[str, int]) -> None:
        self.latest = record.value

    def punctuate(self, now_ms: int) -> None:
        self.context.forward(Record("k", self.trap(self.latest), now_ms))


def words(trap: Trap, value: int) -> Iterator[int]:
    yield 100 * value
    yield trap(value)


Build = Callable[[KStream[str, int], Trap], Any]

#: What stands before the sink. Functions that get one number.
STATELESS: dict[str, Build] = {
    "filter": lambda s, trap: s.filter(trap),
    "filter_not": lambda s, trap: s.filter_not(lambda value: trap(value) == 4),
    "map": lambda s, trap: s.map(lambda key, value: (key, trap(value))),
    "map_values": lambda s, trap: s.map_values(trap),
    "flat_map": lambda s, trap: s.flat_map(lambda key, value: [(key, trap(value))]),
    "flat_map_values": lambda s, trap: s.flat_map_values(lambda value: [trap(value)] * 2),
    "select_key": lambda s, trap: s.select_key(lambda value: str(trap(value))),
    "peek": lambda s, trap: s.peek(trap),
    "branch": lambda s, trap: s.split().branch(lambda value: trap(value) > 0),
    "process": lambda s, trap: s.process(lambda: Doubling(trap), key=str, value=int),
    "process_values": lambda s, trap: s.process_values(lambda: Doubling(trap), value=int),
}

STATEFUL: dict[str, Build] = {
    "reduce": lambda s, trap: s.group_by_key().reduce(lambda one, two: one + trap(two)).to_stream(),
    "aggregate": lambda s, trap: (
        s.group_by_key().aggregate(lambda: 0, lambda whole, value: whole + trap(value), value=int).to_stream()
    ),
    "windowed aggregate": lambda s, trap: (
        s.group_by_key()
        .windowed_by(TimeWindows.tumbling(1000))
        .aggregate(lambda: 0, lambda whole, value: whole + trap(value), value=int)
        .to_stream(lambda window, value: window.key)
    ),
    "table filter": lambda s, trap: s.to_table().filter(trap).to_stream(),
    "table map_values": lambda s, trap: s.to_table().map_values(trap).to_stream(),
    "joiner": lambda s, trap: s.join(s.to_table(), lambda left, right: trap(left) + right),
}


def application(log: Log, build: Build, trap: Trap, **settings: Any) -> App:
    app = log.app("trapped", statestore_cache_max_bytes=0, window_changelog_retention_ms=-1, **settings)
    numbers = app.stream("in", key=str, value=int)
    numbers.to("all")
    build(numbers, trap).to("out", key=str, value=int)
    return app


def prepare(log: Log, records: list[tuple[str, int, int]] = RECORDS) -> None:
    log.create("in", "all", "out", "dead")
    log.write("in", records)


def undisturbed(path: Path, build: Build, records: list[tuple[str, int, int]] = RECORDS) -> list[Any]:
    """What the application writes if nothing raises."""
    path.mkdir()
    log = Log(path)
    try:
        prepare(log, records)
        run_to_the_end(log, application(log, build, Trap(armed=False)))
        return log.read("out")
    finally:
        log.close()


def line_of(text: str) -> str:
    """``file:line`` of this module's line that holds ``text``."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"line {next(n for n, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize("kind", [*STATELESS, *STATEFUL])
def test_the_step_and_the_record_are_named_and_the_mended_function_goes_on_there(
    log: Log, tmp_path: Path, kind: str
) -> None:
    build = {**STATELESS, **STATEFUL}[kind]
    prepare(log)
    trap = Trap()
    failure = failure_of(log, application(log, build, trap))
    assert isinstance(failure, ProcessingError)
    assert "ValueError: three is too many" in failure.what
    assert "task 0_0" in failure.where
    assert "in-0 offset 2, timestamp 30" in failure.where
    assert Path(__file__).name in failure.where, "where the function stands"
    step = failure.what.split()[1]
    trace = "".join(traceback.format_exception(failure))
    assert f"# {step}" in trace, "the line of the step"
    assert line_of('raise ValueError("three is too many")') in trace, "the user's own line"
    trap.armed = False
    run_to_the_end(log, application(log, build, trap))
    assert [record.value for record in log.read("all")] == [1, 2, 3, 4, 5]
    assert log.read("out") == undisturbed(tmp_path / "undisturbed", build)


@pytest.mark.parametrize("kind", [*STATELESS, *STATEFUL])
def test_a_dead_letter_takes_the_record_out_of_its_branch_alone(log: Log, tmp_path: Path, kind: str) -> None:
    build = {**STATELESS, **STATEFUL}[kind]
    prepare(log)
    settings = {
        "processing_exception_handler": "dead_letter",
        "errors_dead_letter_queue_topic_name": "dead",
    }
    run_to_the_end(log, application(log, build, Trap(), **settings))
    assert [record.value for record in log.read("all")] == [1, 2, 3, 4, 5]
    without_it = [record for record in RECORDS if record[1] != 3]
    expected = undisturbed(tmp_path / "undisturbed", build, without_it)
    if kind == "joiner":
        # The table on the other side has the row all the same.
        expected = [record for record in undisturbed(tmp_path / "whole", build) if record.timestamp != 30]
    assert log.read("out") == expected
    (letter,) = dead_letters(log)
    assert (letter.key, letter.value, letter.timestamp) == (b"k", (3).to_bytes(8), 30)
    headers = told(letter)
    assert (headers["topic"], headers["partition"], headers["offset"]) == ("in", "0", "2")
    assert headers["exception"] == "builtins.ValueError"
    assert headers["message"] == "three is too many"
    assert line_of('raise ValueError("three is too many")') in headers["stacktrace"]


def test_continue_leaves_the_record_out_and_counts_it(log: Log) -> None:
    prepare(log)
    app = application(log, STATELESS["map_values"], Trap(), processing_exception_handler="continue")
    streams = log.start(app)
    caught_up(streams)
    assert [record.value for record in log.read("out")] == [1, 2, 4, 5]
    assert streams.metrics.total("dropped-records-total") == 1


def test_a_generator_that_raises_half_way_has_given_its_first_elements(log: Log) -> None:
    prepare(log)
    trap = Trap()
    build: Build = lambda s, t: s.flat_map_values(lambda value: words(t, value))  # noqa: E731
    failure = failure_of(log, application(log, build, trap))
    assert "in-0 offset 2" in failure.where
    run_to_the_end(log, application(log, build, trap, processing_exception_handler="continue"))
    assert [r.value for r in log.read("out")] == [100, 1, 200, 2, 300, 400, 4, 500, 5]


def test_an_initializer_that_raises_is_asked_again_with_the_next_record(log: Log) -> None:
    prepare(log)
    calls = iter([ValueError("not yet")])

    def start() -> int:
        for error in calls:
            raise error
        return 0

    app = log.app("initializer", processing_exception_handler="continue")
    sums = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(start, lambda whole, value: whole + value, value=int)
    )
    sums.to_stream().to("out")
    run_to_the_end(log, app)
    assert log.table("out") == {"k": 2 + 3 + 4 + 5}


@pytest.mark.parametrize("which", ["mapper", "adder", "subtractor"])
def test_functions_of_a_table_group_are_named_with_their_step(log: Log, which: str) -> None:
    prepare(log)
    trap = Trap()

    def when(name: str, value: int) -> int:
        return trap(value) if which == name else value

    def app() -> App:
        app = log.app("grouped")
        table = app.table("in", key=str, value=int, cached=False)
        groups = table.group_by(lambda key, value: ("all", when("mapper", value)), key=str, value=int)
        total = groups.aggregate(
            lambda: 0,
            lambda whole, value: whole + when("adder", value),
            lambda whole, value: whole - when("subtractor", value),
            value=int,
            cached=False,
        )
        total.to_stream().to("out")
        return app

    failure = failure_of(log, app())
    assert "three is too many" in failure.what
    assert "KTABLE-" in failure.what
    assert "offset" in failure.where
    trap.armed = False
    run_to_the_end(log, app())
    assert log.table("out") == {"all": 5}


def test_a_punctuator_that_raises_is_named_and_runs_again_when_mended(log: Log) -> None:
    prepare(log)
    trap = Trap()
    build: Build = lambda s, t: s.process(lambda: Punctual(t), key=str, value=int)  # noqa: E731
    failure = failure_of(log, application(log, build, trap))
    assert "KSTREAM-PROCESSOR-" in failure.what
    assert "punctuation" in failure.where
    assert line_of('raise ValueError("three is too many")') in "".join(traceback.format_exception(failure))
    trap.armed = False
    run_to_the_end(log, application(log, build, trap))
    assert [record.value for record in log.read("all")] == [1, 2, 3, 4, 5]
    assert [record.value for record in log.read("out")][-3:] == [3, 4, 5]


def test_a_wall_clock_punctuator_may_be_left_out(log: Log) -> None:
    prepare(log)
    called: list[int] = []

    class Impatient(Processor[str, int, str, int]):
        def init(self, context: Any) -> None:
            context.schedule(1, PunctuationType.WALL_CLOCK_TIME, self.punctuate)

        def punctuate(self, now_ms: int) -> None:
            called.append(now_ms)
            raise ValueError("again")

        def process(self, record: Record[str, int]) -> None:
            """Only the punctuator counts."""

    build: Build = lambda s, t: s.process(Impatient, key=str, value=int)  # noqa: E731
    streams = log.start(application(log, build, Trap(), processing_exception_handler="continue"))
    eventually(lambda: len(called) > 3, "called again and again")
    caught_up(streams)
    assert [record.value for record in log.read("all")] == [1, 2, 3, 4, 5]


def test_what_follows_a_cache_fails_at_the_commit_and_loses_nothing(log: Log) -> None:
    prepare(log)
    trap = Trap()

    def app() -> App:
        app = log.app("behind")
        counts = app.stream("in", key=str, value=int).group_by_key().reduce(lambda one, two: two, name="last")
        counts.to_stream().map_values(trap).to("out", value=int)
        return app

    log.write("in", [("k", 3, 60)])
    failure = failure_of(log, app())
    assert "KSTREAM-MAPVALUES" in failure.what
    assert "in-0 offset 5, timestamp 60" in failure.where, "the record that changed the row last"
    trap.armed = False
    run_to_the_end(log, app())
    assert log.table("out") == {"k": 3}


def test_a_topic_chooser_and_a_partitioner_are_steps_like_others(log: Log) -> None:
    prepare(log)
    trap = Trap()

    def app(**settings: Any) -> App:
        app = log.app("chosen", **settings)
        numbers = app.stream("in", key=str, value=int)
        numbers.to(lambda key, value: ["", "out"][trap(value) > 0])
        numbers.to("all", partitioner=lambda topic, key, value, count: trap(value) % count)
        return app

    failure = failure_of(log, app())
    assert "KSTREAM-SINK-0000000001" in failure.what
    assert "in-0 offset 2" in failure.where
    run_to_the_end(log, app(processing_exception_handler="continue"))
    assert [r.value for r in log.read("out")] == [1, 2, 4, 5]
    assert [r.value for r in log.read("all")] == [1, 2, 4, 5]


@pytest.mark.parametrize("answer", [7, -1, "first"])
def test_a_partition_that_is_not_there_names_the_partitioner_and_the_record(log: Log, answer: object) -> None:
    prepare(log)
    app = log.app("partitions")
    app.stream("in", key=str, value=int).to("out", partitioner=lambda topic, key, value, count: answer)  # type: ignore[arg-type, return-value]
    failure = failure_of(log, app)
    assert "KSTREAM-SINK-0000000001" in str(failure)
    assert "in-0 offset 0" in failure.where


@pytest.mark.parametrize("answer", [None, "", 5])
def test_a_topic_chooser_that_gives_no_topic_is_named(log: Log, answer: object) -> None:
    prepare(log)
    app = log.app("topics")
    app.stream("in", key=str, value=int).to(lambda key, value: answer)  # type: ignore[arg-type, return-value]
    failure = failure_of(log, app)
    assert "topic chooser" in failure.what
    assert Path(__file__).name in str(failure)
    assert "in-0 offset 0" in failure.where


@pytest.mark.parametrize("at", ["supplier", "init"])
def test_a_processor_that_cannot_be_made_is_named(log: Log, at: str) -> None:
    prepare(log)
    made = []

    class Broken(Processor[str, int, str, int]):
        def __init__(self) -> None:
            made.append(self)
            # The first ones are asked while the topology is compiled.
            if at == "supplier" and len(made) > 2:
                raise ValueError("cannot be made")

        def init(self, context: Any) -> None:
            raise ValueError("cannot be made")

        def process(self, record: Record[str, int]) -> None:
            """It does not come to that."""

    app = log.app("broken")
    app.stream("in", key=str, value=int).process(Broken, key=str, value=int).to("out")
    failure = failure_of(log, app)
    assert isinstance(failure, ProcessingError)
    assert "ValueError: cannot be made" in failure.what
    assert "KSTREAM-PROCESSOR-0000000001" in failure.what
    assert "task 0_0" in failure.where


def test_a_handler_that_raises_is_reported_with_what_it_was_asked_about(log: Log) -> None:
    prepare(log)

    def handler(context: Any) -> Any:
        raise RuntimeError("no idea")

    failure = failure_of(
        log, application(log, STATELESS["map_values"], Trap(), processing_exception_handler=handler)
    )
    assert "handler itself raised RuntimeError: no idea" in failure.what
    assert "three is too many" in failure.why
    assert "in-0 offset 2" in failure.where


def test_a_function_that_calls_sys_exit_is_a_function_that_raises(log: Log) -> None:
    prepare(log)

    def leave(value: int) -> int:
        if value == 3:
            raise SystemExit(0)
        return value

    failure = failure_of(log, application(log, lambda s, t: s.map_values(leave), Trap()))
    assert "called sys.exit(0)" in failure.what
    assert "task 0_0" in failure.where

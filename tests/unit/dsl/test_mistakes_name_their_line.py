"""What a program declares wrongly is told with its line, also where that is found when the topology is built."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import traceback
from datetime import timedelta

import pytest

from pystreams import App, Processor, Topology
from pystreams.config.streams_config import settings_from_environment
from pystreams.dsl.join_windows import JoinWindows
from pystreams.dsl.windows import TimeWindows
from pystreams.errors import ConfigError, StreamsError, TopologyError
from pystreams.state.stores.factory import Stores


def here() -> str:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno}"


def half(value):
    return value / 2


def missing_types(app: App) -> TopologyError:
    with pytest.raises(TopologyError) as caught:
        app.build().build("a")
    return caught.value


MISTAKES = {
    "a window of no length": lambda: TimeWindows.tumbling(timedelta(0)),
    "a window made by its class": lambda: TimeWindows(0, 0, 0),
    "no windows": lambda: App("a").stream("t").group_by_key().windowed_by(3),
    "a function of the wrong arity": lambda: App("a").stream("t").map_values(lambda: 1),
    "a wrong serde": lambda: App("a").stream("t", value=3),
    "a wrong name": lambda: App("a").table("t", name="a b"),
    "a wrong setting": lambda: App("a", commit_interval_ms="soon"),
    "an unknown setting": lambda: App("a", comit_interval_ms=1),
    "no store": lambda: Topology().add_state_store("s"),
    "a store that makes no sense": lambda: Stores.lru_map("s", str, str, max_entries=-1),
    "a parent that is not there": lambda: Topology().add_processor("p", Processor, "nobody"),
}


@pytest.mark.parametrize("make", MISTAKES.values(), ids=MISTAKES)
def test_where_it_is_declared(make):
    with pytest.raises((TopologyError, ConfigError)) as caught:
        make()
    assert caught.value.line == f"{__file__}:{make.__code__.co_firstlineno}"
    where = next(line for line in str(caught.value).splitlines() if line.startswith("  where: "))
    assert where.count(caught.value.line) == 1


def test_a_function_elsewhere_is_reported_beside_the_step():
    def takes_three(a, b, c):
        return a

    first = takes_three.__code__.co_firstlineno
    with pytest.raises(TopologyError) as caught:
        App("a").stream("t").map_values(takes_three)
    assert caught.value.line == f"{__file__}:{int(here().rpartition(':')[2]) - 1}"
    assert f"takes_three ({__file__}:{first})" in caught.value.place


def test_a_type_that_is_missing_is_reported_with_the_call_that_leaves_it_open_and_the_step_that_needs_it():
    app = App("a")
    numbers = app.stream("t", key=str, value=int)
    numbers, calling = numbers.map_values(lambda v: [v]), here()
    numbers.to("sizes", step="out"), (needing := here())
    error = missing_types(app)
    assert error.what == "map_values has no value type"
    assert error.line == calling
    assert error.place.startswith(f"{calling}, map_values: ")
    assert error.place.endswith(f"needed by out in {needing}")


def test_a_store_whose_type_is_missing_is_reported_with_the_call_that_makes_it():
    app = App("a")
    grouped = app.stream("t", key=str, value=str).group_by_key()
    grouped.aggregate(lambda: 0, lambda a, v: v, name="sums"), (calling := here())
    error = missing_types(app)
    assert error.what == "aggregate has no value type"
    assert error.line == calling


def test_all_types_that_are_missing_are_reported_at_once():
    app = App("a")
    numbers = app.stream("t", key=str, value=int)
    numbers.group_by(lambda v: v % 3).count(name="thirds"), (first := here())
    halves, second = numbers.map_values(half), here()
    halves.to("halves")
    halves.merge(numbers.map_values(half)).to("both"), (third := here())
    error = missing_types(app)
    assert error.what == "group_by has no key type, map_values has no value type, merge has no value type"
    lines = error.where.splitlines()
    calls = [f"{first}, group_by: ", f"{second}, map_values: ", f"{third}, merge: "]
    assert [line[: len(call)] for line, call in zip(lines, calls, strict=True)] == calls
    assert "key= or value=" in error.hint
    assert str(error).splitlines()[2] == " " * 9 + lines[1]


def test_a_type_that_is_missing_in_two_steps_is_reported_once():
    app = App("a")
    halves = app.stream("t", key=str, value=int).map_values(half)
    halves.to("one")
    halves.to("two")
    assert len(missing_types(app).where.splitlines()) == 1


def test_a_key_that_a_lambda_makes_is_refused_with_what_gives_it_a_type():
    app = App("a")
    numbers = app.stream("t", key=str, value=int)
    numbers.group_by(lambda v: v % 3).count(name="thirds")
    error = missing_types(app)
    assert error.why == "a lambda has no annotation"
    assert error.hint.startswith("annotate what the function returns (def f(value) -> str), or pass key=;")

    def third(value: int) -> int:
        return value % 3

    annotated, given = App("a"), App("a")
    annotated.stream("t", key=str, value=int).group_by(third).count(name="thirds")
    given.stream("t", key=str, value=int).group_by(lambda v: v % 3, key=int).count(name="thirds")
    assert annotated.build().build("a").fingerprint == given.build().build("a").fingerprint


def test_a_function_whose_results_have_no_known_type_is_named():
    app = App("a")
    app.stream("t", key=str, value=int).map_values(half).to("halves")
    place = f"half ({__file__}:{half.__code__.co_firstlineno})"
    assert missing_types(app).why == f"no annotation says what {place} returns"


def test_a_sink_of_the_low_level_api_without_types_is_reported_with_its_line():
    topology = Topology().add_source("in", "t", key=str, value=str)
    topology.add_sink("out", "o", "in"), (calling := here())
    with pytest.raises(
        TopologyError, match=r"^add_sink has no key type, add_sink has no value type\n"
    ) as caught:
        topology.build("a")
    assert caught.value.line == calling


def test_a_name_given_twice_is_reported_with_both_lines():
    app = App("a")
    app.stream("t").filter(bool, step="odd"), (first := here())
    app.stream("t").filter(bool, step="odd"), (second := here())
    with pytest.raises(TopologyError, match="step odd has already been added") as caught:
        app.build()
    assert caught.value.line == second
    assert first in caught.value.why


def test_a_store_given_twice_is_reported_with_both_lines():
    app = App("a")
    app.table("one", name="rows"), (first := here())
    app.table("two", name="rows"), (second := here())
    with pytest.raises(TopologyError, match="the name rows") as caught:
        app.build()
    assert caught.value.line == second
    assert first in caught.value.why


def test_a_topic_that_is_read_in_two_ways_is_reported_with_both_lines():
    app = App("a")
    app.table("rows"), (first := here())
    app.stream("rows"), (second := here())
    with pytest.raises(TopologyError, match="topic rows is already read") as caught:
        app.build()
    assert caught.value.line == second
    assert first in caught.value.why


def test_two_streams_that_contradict_each_other_are_reported_with_both_lines():
    app = App("a")
    app.stream("t", value=str), (first := here())
    app.stream("t", value=int), (second := here())
    with pytest.raises(TopologyError, match="different value types") as caught:
        app.build()
    assert first in caught.value.place
    assert second in caught.value.place


def test_joined_topics_with_different_partitions_are_reported_with_their_lines():
    app = App("a")
    left = app.stream("l", key=str, value=str).repartition(name="l", partitions=2)
    there = here()
    right = app.stream("r", key=str, value=str).repartition(name="r", partitions=3)
    left.join(right, lambda a, b: a + b, windows=JoinWindows.of(timedelta(1)))
    with pytest.raises(TopologyError, match="different numbers of partitions") as caught:
        app.build()
    line = int(there.rpartition(":")[2])
    assert f"{__file__}:{line - 1} and {__file__}:{line + 1}" in caught.value.place


def test_what_has_generated_names_is_reported_with_its_lines():
    app = App("a", ensure_explicit_internal_resource_naming=True)
    app.stream("t", key=str, value=str).group_by_key().count(), (there := here())
    with pytest.raises(TopologyError, match="generated names") as caught:
        app.build()
    assert caught.value.where == there


def test_what_a_variable_says_wrongly_is_reported_with_the_variable_alone(monkeypatch):
    monkeypatch.setenv("PYSTREAMS_COMMIT_INTERVAL_MS", "soon")
    with pytest.raises(ConfigError) as caught:
        settings_from_environment(os.environ)
    assert caught.value.place == "environment variable PYSTREAMS_COMMIT_INTERVAL_MS"


def test_the_line_changes_neither_the_fingerprint_nor_the_description():
    one, two = App("a"), App("a")
    for app in (one, two):
        app.stream("t", key=str, value=str).group_by_key().count(name="n")
    three = App("a")
    three.stream("t", key=str, value=str).group_by_key().count(name="n")
    assert one.build().describe() == three.build().describe()
    assert one.build().build("a").fingerprint == three.build().build("a").fingerprint


def test_other_errors_cost_no_look_at_the_stack():
    assert StreamsError("it failed").line == ""


def test_a_text_that_python_is_given_has_lines_too():
    program = "from pystreams import App\n\nApp('a').stream('t').filter(lambda: 1)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert "where: <lambda> (<string>, line 3)" in run.stderr


def test_python_at_its_prompt_has_lines_too():
    program = "from pystreams import App\nApp('a').stream('t').filter(lambda: 1)\n"
    run = subprocess.run(
        [sys.executable, "-i"], input=program, capture_output=True, text=True, timeout=60, check=False
    )
    # Since Python 3.13 each input has a number.
    assert re.search(r"where: <lambda> \(<stdin>(-\d+)?, line 1\)", run.stderr)


def test_a_traceback_still_ends_in_the_message():
    with pytest.raises(TopologyError) as caught:
        App("a").stream("t").filter(3)
    assert traceback.format_exception(caught.value)[-1].startswith("pystreams.errors.TopologyError: filter ")

"""What cannot be joined is refused where it is written, with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pystreams import JoinWindows, KStream, StreamsBuilder, TimeWindows, TopologyError

WINDOWS = JoinWindows.of(10)


def next_key(given: dict[str, Any]) -> str:
    return next(iter(given))


def pair(left: Any, right: Any) -> str:
    return f"{left}{right}"


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


@pytest.fixture
def left(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("l", key=str, value=str)


@pytest.fixture
def right(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("r", key=str, value=str)


def test_durations_are_milliseconds_or_timedeltas() -> None:
    windows = JoinWindows.of(timedelta(seconds=2), grace=timedelta(milliseconds=7)).before(
        timedelta(seconds=1)
    )
    assert (windows.before_ms, windows.after_ms, windows.grace_ms) == (1000, 2000, 7)
    assert windows.after(5) == JoinWindows(1000, 5, 7)
    assert windows.size_ms == 3000
    assert windows.retention_ms == 3007


def test_nothing_comes_late_unless_a_grace_is_given() -> None:
    """Java's deprecated ``JoinWindows.of`` waits for a day, and has results without a match at once."""
    assert JoinWindows.of(10).grace_ms == 0


def test_one_end_may_be_negative_as_long_as_the_window_is_not() -> None:
    assert JoinWindows.of(10).before(-10).size_ms == 0
    with pytest.raises(TopologyError, match="ends before it starts"):
        JoinWindows.of(10).before(-11)


@pytest.mark.parametrize(
    "make",
    [
        lambda: JoinWindows.of(-1),
        lambda: JoinWindows.of(1, grace=-1),
        lambda: JoinWindows.of("1 minute"),  # type: ignore[arg-type]
        lambda: JoinWindows.of(1).after(1.5),  # type: ignore[arg-type]
    ],
    ids=["negative", "negative grace", "text", "a fraction"],
)
def test_what_is_no_duration_is_refused(make: Callable[[], JoinWindows]) -> None:
    with pytest.raises(TopologyError):
        make()


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_without_windows_streams_are_not_joined(method: str, left: Any, right: Any) -> None:
    with pytest.raises(TopologyError, match=f"{method} of two streams needs windows="):
        getattr(left, method)(right, pair)


def test_other_windows_are_refused_by_name(left: Any, right: Any) -> None:
    with pytest.raises(TopologyError, match="takes JoinWindows, not TimeWindows"):
        left.join(right, pair, windows=TimeWindows.tumbling(5))


@pytest.mark.parametrize(
    "given", [{"windows": WINDOWS}, {"name": "x"}, {"persistent": False}, {"key": str}], ids=next_key
)
def test_a_join_with_a_table_takes_nothing_of_a_join_with_a_stream(
    given: dict[str, Any], builder: StreamsBuilder, left: Any
) -> None:
    with pytest.raises(TopologyError, match=f"join with a table does not take {next_key(given)}="):
        left.join(builder.table("t", key=str, value=str), pair, **given)


def test_a_table_has_no_outer_join_with_a_stream(builder: StreamsBuilder, left: Any) -> None:
    with pytest.raises(TopologyError, match="outer_join of a stream takes a stream, not KTable"):
        left.outer_join(builder.table("t", key=str, value=str), pair, windows=WINDOWS)


@pytest.mark.parametrize("given", [{"cached": True}, {"retention": 5}], ids=next_key)
def test_its_stores_are_neither_cached_nor_kept_for_another_time(
    given: dict[str, Any], left: Any, right: Any
) -> None:
    with pytest.raises(TopologyError, match="join of two streams does not take"):
        left.join(right, pair, windows=WINDOWS, **given)


def test_a_misspelt_argument_is_a_call_that_does_not_fit(left: Any, right: Any) -> None:
    with pytest.raises(TypeError, match="did you mean persistent"):
        left.join(right, pair, windows=WINDOWS, persistant=False)


def test_a_store_name_must_be_a_name(left: Any, right: Any) -> None:
    with pytest.raises(TopologyError, match="cannot be a name"):
        left.join(right, pair, windows=WINDOWS, name="a b")


def test_streams_of_two_builders_do_not_meet(left: Any) -> None:
    with pytest.raises(TopologyError, match="belong to different builders"):
        left.join(StreamsBuilder().stream("r", key=str, value=str), pair, windows=WINDOWS)


def test_keys_of_different_types_do_not_meet_unless_a_type_is_given(
    builder: StreamsBuilder, left: Any
) -> None:
    numbered = builder.stream("n", key=int, value=str)
    with pytest.raises(TopologyError, match="keys of different types"):
        left.join(numbered, pair, windows=WINDOWS)
    left.join(numbered, pair, windows=WINDOWS, key=str)


def test_a_key_without_a_type_takes_the_other_streams(builder: StreamsBuilder, right: Any) -> None:
    parsed = builder.stream("l", value=dict).select_key(lambda value: value["user"])
    parsed.left_join(right, pair, windows=WINDOWS, value=str).to("out")
    built = builder.build().build("app")
    assert {repr(spec.key_serde) for spec in built.stores} == {"str", "WaitingKeySerde(str)"}


def test_unnamed_stores_and_topics_are_found_by_the_naming_check() -> None:
    builder = StreamsBuilder(ensure_explicit_internal_resource_naming=True)
    left, right = (builder.stream(topic, key=str, value=str) for topic in "lr")
    rekeyed = left.select_key(lambda value: value)
    rekeyed.left_join(right, pair, windows=WINDOWS)
    with pytest.raises(TopologyError) as raised:
        builder.build()
    for name in ("KSTREAM-JOINTHIS", "KSTREAM-OUTEROTHER", "KSTREAM-OUTERSHARED", "KEY-SELECT"):
        assert name in str(raised.value)


def test_named_ones_pass_it() -> None:
    builder = StreamsBuilder(ensure_explicit_internal_resource_naming=True)
    left, right = (builder.stream(topic, key=str, value=str) for topic in "lr")
    rekeyed = left.select_key(lambda value: value)
    rekeyed.outer_join(right, pair, windows=WINDOWS, name="kept", step="meet")
    built = builder.build().build("app")
    assert {spec.name for spec in built.stores} == {
        "kept-outer-this-join-store",
        "kept-outer-other-join-store",
        "kept-outer-shared-join-store",
    }
    assert "app-meet-left-repartition" in built.internal_topics


def test_windows_are_in_the_fingerprint() -> None:
    def fingerprint(windows: JoinWindows) -> str:
        builder = StreamsBuilder()
        left, right = (builder.stream(topic, key=str, value=str) for topic in "lr")
        left.outer_join(right, pair, windows=windows)
        return builder.build().build("app").fingerprint

    base = fingerprint(JoinWindows(5, 5, 10))
    assert fingerprint(JoinWindows(5, 5, 10)) == base
    # The sum of all three is the same in each.
    others = (JoinWindows(6, 4, 10), JoinWindows(5, 6, 9), JoinWindows(4, 5, 11))
    assert len({base, *map(fingerprint, others)}) == 4

"""The stages of a program: who waits for whom, and by how much results can be older on the way."""

from __future__ import annotations

from pystreams import StreamsBuilder, TimeWindows
from pystreams.runtime.catching_up.stages import order, stages_of
from tests.unit.runtime.catching_up.group_kit import inputs_of


def one(*subs: int) -> frozenset[int]:
    return frozenset(subs)


def test_what_comes_behind_a_repartition_waits_if_time_matters_there():
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    by_value = stream.group_by(lambda key, value: value)
    by_value.windowed_by(TimeWindows.tumbling(1_000)).count(name="windows").to_stream().to("out")
    builder.stream("other", key=str, value=str).group_by(lambda k, v: v).count().to_stream().to("counts")
    built = builder.build().build("app")
    stages = stages_of(built, inputs_of(built, partitions=2))
    assert stages.in_order == (one(0), one(1))
    assert stages.waiting == {1}


def test_nothing_waits_where_no_step_looks_at_the_time():
    assert not order({0: one(), 1: one(0)}, {0: 0, 1: 0}, one()).in_order


def test_nothing_waits_in_front_of_the_first_topic_in_between():
    stages = order({0: one(), 1: one(0)}, {0: 0, 1: 0}, one(0))
    assert not stages.waiting
    assert not stages.in_order


def test_a_step_further_on_makes_those_before_it_wait_too():
    stages = order({0: one(), 1: one(0), 2: one(1)}, {0: 0, 1: 0, 2: 0}, one(2))
    assert stages.waiting == {1, 2}
    assert stages.in_order == (one(0), one(1), one(2))


def test_the_longest_way_counts():
    """0 feeds 3 by 1 and by 2, and directly."""
    stages = order({0: one(), 1: one(0), 2: one(0), 3: one(0, 1, 2)}, {0: 5, 1: 10, 2: 100, 3: 1_000}, one(3))
    assert stages.hold_back_until(one(0), one(3)) == 105
    assert stages.hold_back_until(one(2), one(3)) == 100


def test_those_that_feed_each_other_are_one_stage():
    stages = order({0: one(), 1: one(0, 2), 2: one(1), 3: one(2)}, dict.fromkeys(range(4), 10), one(3))
    assert stages.in_order == (one(0), one(1, 2), one(3))
    assert stages.before[one(3)] == {one(0), one(1, 2)}
    assert stages.hold_back_until(one(0), one(3)) == 30


def test_what_comes_in_its_order_does_not_wait_and_those_behind_it_wait_for_it():
    """1 and 2 come in their order; 3 reads something else, too."""
    chain = {0: one(), 1: one(0), 2: one(1), 3: one(2)}
    stages = order(chain, dict.fromkeys(chain, 0), one(2, 3), one(1, 2))
    assert stages.waiting == {3}
    assert stages.before[one(3)] == {one(0), one(1), one(2)}
    assert not order(chain, dict.fromkeys(chain, 0), one(2), one(1, 2)).in_order

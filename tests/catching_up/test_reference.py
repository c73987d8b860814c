"""The plain computation comes to what the test driver does where one partition's records come in the order of time."""

from __future__ import annotations

import msgspec
import pytest

from pystreams.testing import TopologyTestDriver
from tests.catching_up.comparing import compare
from tests.catching_up.histories import in_time, trial
from tests.catching_up.programs import application
from tests.catching_up.reference import Expected, Rec, arrived, expected
from tests.catching_up.trials import LEFT, OUT, RIGHT, ROWS, Event, History, Rekey, Trial
from tests.examples import chosen
from tests.live.support import Read

#: Of the first 24 those that have all kinds of steps together, and all numbers of them.
SEEDS = chosen(range(24), (1, 4, 6, 7, 9, 10, 12, 16, 18, 19, 21, 23).__contains__)


def of_one_partition(one: Trial) -> Trial:
    """The same records and steps, but all topics have one partition."""
    steps = [msgspec.structs.replace(s, partitions=1) if isinstance(s, Rekey) else s for s in one.steps]
    changed = {"left": [_merged(one.left)], "right": [_merged(one.right)], "rows": [_merged(one.rows)]}
    return in_time(msgspec.structs.replace(one, steps=steps, **changed))


def _merged(history: History) -> list[Event]:
    return [event for _, _, _, event in sorted(_moments(history))]


def _moments(history: History) -> list[tuple[int, int, int, Event]]:
    """When records come, by partition and offset."""
    return [
        (rec.moment, partition, offset, history[partition][offset])
        for partition, recs in arrived(history).items()
        for offset, rec in enumerate(recs)
    ]


def driven(one: Trial) -> list[Read]:
    """What the test driver makes of a trial."""
    inputs = {ROWS: one.rows, LEFT: one.left, RIGHT: one.right}
    with TopologyTestDriver(application(one)) as driver:
        # At one time, rows are first.
        coming = sorted((m, n, o, e) for n, of in enumerate(inputs.values()) for m, _, o, e in _moments(of))
        topics = {
            number: driver.create_input_topic(topic, key=str, value=str)
            for number, (topic, history) in enumerate(inputs.items())
            if any(history)
        }
        for _, number, _, event in coming:
            topics[number].pipe_input(event.key, event.id, timestamp=event.time)
        results = driver.create_output_topic(OUT, key=str, value=str).read_records()
        return [Read(result.key, result.value, result.timestamp) for result in results]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_equals_the_test_driver(seed: int):
    one = of_one_partition(trial(seed))
    outcome = expected(one)
    assert outcome.results
    compare(outcome, driven(one))


def test_the_same_seed_gives_the_same_trial_and_a_file_keeps_it():
    one = trial(7)
    assert one == trial(7)
    assert msgspec.json.decode(msgspec.json.encode(one), type=Trial) == one


def test_a_history_has_what_is_out_of_order_but_no_more_than_the_grace_of_what_comes_next():
    trials = [trial(seed) for seed in SEEDS]
    late = [rec.moment - rec.time for one in trials for recs in arrived(one.left).values() for rec in recs]
    assert max(late) > 0
    for one in trials:
        assert in_time(one) == one


# What the comparison finds

ONE = Rec(17, "k1@10/20", "a.1 a.2", 30, 30)


def differences(*told: tuple[str, str | None, int], emission: str = "close", again: bool = False) -> str:
    """What is said of results where one is expected."""
    with pytest.raises(AssertionError) as caught:
        compare(Expected([ONE], [], emission), [Read(*one) for one in told], again=again)
    return str(caught.value)


@pytest.mark.parametrize("emission", ["close", "update"])
def test_a_difference_says_which_records_a_window_lacks(emission: str):
    told = ("k1@10/20", "a.1", 17)
    assert "k1@10/20: of 2 records it lacks a.2" in differences(told, emission=emission)
    assert "k1@10/20: never came: a.1, a.2 @17" in differences(emission=emission)
    told = ("k1@10/20", "a.1 a.2 a.3", 18)
    assert "has a.3, which does not belong to it and has the time 18 instead of 17" in differences(told)


def test_what_comes_twice_is_a_difference_unless_it_may_come_again():
    whole = ("k1@10/20", "a.1 a.2", 17)
    assert "must not come again" in differences(whole, whole)
    compare(Expected([ONE], [], "close"), [Read(*whole)] * 2, again=True)
    assert "must not come: a.1 @17" in differences(whole, ("k1@10/20", "a.1", 17), again=True)


def test_of_updates_the_last_one_counts():
    first, last = Read("k1@10/20", "a.1", 17), Read("k1@10/20", "a.1 a.2", 17)
    compare(Expected([ONE], [], "update"), [first, last])
    assert "lacks a.2" in differences(last, first, emission="update")
    assert "never came" in differences(last, Read("k1@10/20", None, 17), emission="update")


def test_what_may_come_is_no_difference():
    maybe = Expected([], [ONE._replace(by=None)], "close")
    compare(maybe, [])
    compare(maybe, [Read("k1@10/20", "a.1 a.2", 17)])

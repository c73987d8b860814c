"""A topic that has got more partitions since its records failed is noticed: their keys belong elsewhere now."""

from __future__ import annotations

import random

import pytest

from pystreams.cli.commands.dlq.growth import Growth
from pystreams.cli.terminal.exits import Exit
from pystreams.errors import TopicError
from pystreams.partitioning import partition_for_key
from tests.cli.dlq.dlq_kit import bury, create, failure, read, values

KEYS = [b"k%d" % n for n in range(30)]


def of_fewer_partitions(partitions: int) -> None:
    """Letters of records that were written when topic orders had this number of partitions."""
    places = [partition_for_key(key, partitions) for key in KEYS]
    bury(
        *(
            failure(key, key=key, partition=p, offset=n)
            for n, (key, p) in enumerate(zip(KEYS, places, strict=True))
        )
    )


def test_a_replay_is_refused_until_somebody_chooses(pystreams):
    create("orders", partitions=6)
    create("dead")
    of_fewer_partitions(4)
    ended = pystreams("dlq", "replay", "dead", "--yes")
    assert ended.code == Exit.BROKER
    assert "orders has more partitions than when the records came" in ended.err
    moved = sum(partition_for_key(key, 6) != partition_for_key(key, 4) for key in KEYS)
    assert (
        f"why:   it has 6 partitions now and had 4: the keys of {moved} of the records now belong to other partitions, "
        "where an application keeps their state\n"
    ) in ended.err
    assert values(pystreams) == []
    again = pystreams("dlq", "replay", "dead", "--yes", "--by-key")
    assert (again.code, again.err) == (0, "Replayed 30 records to orders.\n")
    placed = {record["key"]: record["partition"] for record in read(pystreams, "orders")}
    assert placed == {key.decode(): partition_for_key(key, 6) for key in KEYS}


def test_the_partitions_that_records_came_from_can_be_insisted_on(pystreams):
    create("orders", partitions=6)
    create("dead")
    of_fewer_partitions(4)
    assert pystreams("dlq", "replay", "dead", "--yes", "--same-partitions").code == 0
    placed = {record["key"]: record["partition"] for record in read(pystreams, "orders")}
    assert placed == {key.decode(): partition_for_key(key, 4) for key in KEYS}


def test_the_same_partitions_of_another_topic_are_refused(pystreams):
    create("orders", "dead", "again")
    ended = pystreams("dlq", "replay", "dead", "--to", "again", "--same-partitions")
    assert ended.code == 2
    assert "--same-partitions is not possible with --to again" in ended.err


def test_letters_of_before_and_after_are_noticed() -> None:
    growth = Growth("orders", 6)
    for n, key in enumerate(KEYS):
        growth.see(key, partition_for_key(key, 3 if n % 2 else 6))
    with pytest.raises(TopicError, match="had 3"):
        growth.check("a log")


@pytest.mark.parametrize("partitions", [1, 2, 3, 12])
def test_a_topic_that_has_not_grown_is_not_suspected(partitions: int) -> None:
    growth = Growth("orders", partitions)
    for key in KEYS:
        growth.see(key, partition_for_key(key, partitions))
        growth.see(None, 0)
    growth.check("a log")


def test_a_writer_that_chooses_partitions_itself_is_hardly_ever_suspected() -> None:
    seed = random.randrange(1 << 32)
    print(f"random partitions from seed {seed}")
    choose, suspected = random.Random(seed), 0
    for _ in range(1_000):
        partitions = choose.randrange(2, 20)
        growth = Growth("orders", partitions)
        for key in choose.sample(KEYS, choose.randrange(1, 20)):
            growth.see(key, choose.randrange(partitions))
        try:
            growth.check("a log")
        except TopicError:
            suspected += 1
    # Expected are less than 10.
    assert suspected < 40

"""A set of identities holds what was added, on the disk."""

from __future__ import annotations

import tracemalloc
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from pystreams.cli.commands.dlq.identity_set import IdentitySet, block_of
from pystreams.cli.commands.dlq.letters import Identity
from pystreams.ids import TopicPartition

identities = st.builds(
    Identity,
    st.builds(TopicPartition, st.sampled_from(["orders", 'a "b"', "ü"]), st.integers(0, 3)),
    st.integers(0, 5_000),
    st.sampled_from(["00ff", "a1b2"]),
)


@given(st.lists(identities, max_size=40), st.sets(identities, max_size=20))
def test_it_is_a_set(added: list[Identity], others: set[Identity]) -> None:
    with closing(IdentitySet()) as found:
        known: set[Identity] = set()
        for identity in added:
            assert found.add(identity) == (identity not in known)
            known.add(identity)
        for identity in {*added, *others}:
            assert (identity in found) == (identity in known)
        for block in {block_of(identity) for identity in added}:
            marks = list(found.marks(block))
            assert len(marks) == len({one for one in known if block_of(one) == block})
            found.replace(block, marks[1:])
            assert list(found.marks(block)) == marks[1:]


def test_many_identities_take_no_memory_of_python() -> None:
    partition = TopicPartition("orders", 0)
    with closing(IdentitySet()) as found:
        tracemalloc.start()
        try:
            for offset in range(0, 20_000_000, 1_000):
                found.add(Identity(partition, offset, "0123456789ab"))
            assert tracemalloc.get_traced_memory()[1] < 200_000
        finally:
            tracemalloc.stop()

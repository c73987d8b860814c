"""The marks of replayed records, written and read again, hold exactly the records that were added."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from pystreams.cli.commands.dlq.letters import Identity
from pystreams.cli.commands.dlq.marks import Marks
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

identities = st.builds(
    Identity,
    st.builds(TopicPartition, st.sampled_from(["orders", 'a "b"']), st.integers(0, 3)),
    st.integers(0, 5_000),
    st.sampled_from(["00ff", "a1b2"]),
)


def as_batch(changed: list[tuple[bytes, bytes]]) -> RecordBatch:
    keys, values = [list(column) for column in zip(*changed, strict=True)] if changed else ([], [])
    size = len(keys)
    return RecordBatch("marks", 0, keys, values, [0] * size, range(size), None, size)


@given(st.lists(st.sets(identities, max_size=30), max_size=4), st.sets(identities, max_size=30))
def test_what_transactions_wrote_is_what_the_next_replay_knows(
    transactions: list[set[Identity]], others: set[Identity]
) -> None:
    written = []
    with closing(Marks("id")) as marks, closing(Marks("id")) as read:
        for transaction in transactions:
            for identity in transaction:
                marks.add(identity)
            written.append(as_batch(list(marks.take_changed())))
        read.load(written)
        added = set().union(*transactions)
        assert all(identity in read for identity in added)
        assert not any(identity in read for identity in others - added)
        assert list(read.take_changed()) == [], "only what was added since is written"


@given(st.sets(identities, max_size=10))
def test_marks_for_an_earlier_topic_of_the_name_do_not_count(added: set[Identity]) -> None:
    with closing(Marks("earlier")) as marks, closing(Marks("later")) as read:
        for identity in added:
            marks.add(identity)
        read.load([as_batch(list(marks.take_changed()))])
        assert not any(identity in read for identity in added)

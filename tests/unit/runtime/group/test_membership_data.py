"""What members tell each other comes back from its bytes, and bytes that are nothing of the kind are refused with a
reason, before they fill the memory."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.errors import TopologyError
from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    Whereabouts,
    decode_assignment_info,
    decode_subscription,
    encode,
    pack_offsets,
    pack_reached,
    pack_tasks,
    pack_topology,
    pack_whereabouts,
    state_of,
    unpack_tasks,
    unpack_topology,
    whereabouts_of,
)

tasks = st.builds(TaskId, st.integers(0, 300), st.integers(0, 70_000))
offsets = st.dictionaries(tasks, st.integers(0, 2**63 - 1))
names = st.text(max_size=20)
small = st.integers(0, 70_000)
by_subtopology = st.dictionaries(small, st.lists(st.integers(-1, 300)))
packed_tasks = st.dictionaries(small, st.lists(small))
subscriptions = st.builds(
    Subscription,
    names,
    names,
    names,
    offsets.map(pack_reached),
    packed_tasks,
    packed_tasks,
    packed_tasks,
    st.dictionaries(names, names),
    names,
    st.booleans(),
    st.binary(),
    names,
    names,
    names,
    st.binary(),
    small,
)
whereabouts = st.builds(
    Whereabouts,
    st.lists(names),
    st.lists(names),
    by_subtopology,
    st.dictionaries(small, st.lists(st.lists(small, max_size=3))),
)
BOMB = zlib.compress(bytes(2**26))
OTHERS: list[bytes] = [
    b"no deflated bytes",
    zlib.compress(b"no MessagePack \xc1"),
    zlib.compress(msgspec.msgpack.encode("a text")),
    zlib.compress(msgspec.msgpack.encode([{0: [1, 2]}, b"seven b"])),
    pack_offsets({TaskId(0, 1): 7})[:-1],
    BOMB,
]


@given(subscriptions)
def test_a_subscription_comes_back_from_its_bytes(said: Subscription) -> None:
    assert decode_subscription(encode(said)) == said


@given(st.builds(AssignmentInfo, small, small, names, st.binary(), st.booleans(), whereabouts=st.binary()))
def test_an_assignment_comes_back_from_its_bytes(info: AssignmentInfo) -> None:
    assert decode_assignment_info(encode(info)) == info


@given(st.frozensets(tasks))
def test_tasks_come_back(some: frozenset[TaskId]) -> None:
    assert unpack_tasks(pack_tasks(some)) == some


@given(offsets, offsets)
@example({TaskId(0, p): 2**63 - 1 - p for p in range(300)}, {})
def test_the_state_of_a_process_comes_back_and_what_a_thread_fills_counts_more(
    on_disk: dict[TaskId, int], reached: dict[TaskId, int]
) -> None:
    said = Subscription("f", "p", "t", pack_reached(reached), on_disk=pack_offsets(on_disk))
    assert state_of(decode_subscription(encode(said))) == on_disk | reached


@given(whereabouts)
def test_where_all_tasks_are_comes_back_in_both_forms(where: Whereabouts) -> None:
    plain = AssignmentInfo(
        threads=where.threads, endpoints=where.endpoints, owners=where.owners, followers=where.followers
    )
    deflated = AssignmentInfo(whereabouts=pack_whereabouts(where))
    for info in (plain, deflated):
        assert whereabouts_of(decode_assignment_info(encode(info))) == where


def of_state(data: bytes) -> object:
    return state_of(Subscription("f", "p", "t", on_disk=data))


def of_places(data: bytes) -> object:
    return whereabouts_of(AssignmentInfo(whereabouts=data))


@pytest.mark.parametrize("read", [of_state, of_places, unpack_topology])
@pytest.mark.parametrize("data", OTHERS, ids=range(len(OTHERS)))
def test_other_bytes_are_refused_with_a_reason(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(TopologyError, match="cannot be read") as refused:
        read(data)
    assert refused.value.why


@given(st.binary(min_size=1))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    readers: list[Callable[[bytes], object]] = [
        of_state,
        of_places,
        unpack_topology,
        decode_subscription,
        decode_assignment_info,
        lambda content: of_state(zlib.compress(content)),
        lambda content: of_places(zlib.compress(content)),
    ]
    for read in readers:
        with contextlib.suppress(TopologyError):
            read(data)


@pytest.mark.parametrize("read", [of_state, of_places, unpack_topology])
def test_what_would_inflate_without_bounds_is_not_inflated(read: Callable[[bytes], object]) -> None:
    with pytest.raises(TopologyError, match="more than 16777216 bytes"):
        read(BOMB)


def test_the_topology_comes_back() -> None:
    assert unpack_topology(pack_topology([{"nodes": []}])) == [{"nodes": []}]

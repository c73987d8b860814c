"""What members tell each other comes back from its bytes, also from those of older versions, and bytes that are nothing
of the kind are refused with a reason, before they fill the memory."""

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
#: What older versions have written, with a value in each field. These bytes stay as they are.
SUBSCRIPTION_1 = (
    b"\x01\xde\x00\x10\xabfingerprint\xabfingerprint\xaaprocess_id\xa7process\xa6thread\xa6thread"
    b"\xa7reached\x81\x00\x81\x01\x02\xa8standbys\x81\x00\x91\x03\xa6coming\x81\x01\x91\x04"
    b"\xa9restoring\x81\x00\x92\x05\x06\xa4tags\x81\xa4zone\xa1a\xa4rack\xa4rack\xa8shutdown\xc3"
    b"\xa8topology\xc4\x08topology\xa8endpoint\xa6host:1\xa9pystreams\xa30.1\xa6python\xa43.11"
    b'\xa7on_disk\xc4\x18x\xda\x9b\xd4\xc40\x91\x91i"\xf3\x11\x01\x06d\xc0\xc8\xae\x03\x00C\x89\x03E'
    b"\xa6worker\x02"
)
ASSIGNMENT_1 = (
    b"\x01\x8e\xa5tasks\x03\xa7members\x02\xa5error\xa5error\xa8topology\xc4\x08topology\xa8shutdown\xc3"
    b"\xa7threads\x91\xa3one\xa6owners\x81\x00\x92\x00\xff\xa8standbys\x81\x00\x91\x01\xa7awaited\x81\x00\x91\x02"
    b"\xa6coming\x81\x01\x91\x03\xacfollow_up_ms\xcd\x01\xf4\xa9endpoints\x91\xa6host:1"
    b"\xa9followers\x81\x00\x92\x91\x00\x90"
    b"\xabwhereabouts\xc4)x\xda\x9b2iq~^\xea\xe2\x92\xf2\xfcI\xcb2\xf2\x8bK\xac\x0c\x1742Lf\xf8\xcf\x08$'2"
    b"N\x98\xc8\x00\x00\x03l\r\xe5"
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


def test_a_subscription_of_an_older_version_is_read() -> None:
    said = decode_subscription(SUBSCRIPTION_1)
    assert msgspec.structs.replace(said, on_disk=b"") == Subscription(
        fingerprint="fingerprint",
        process_id="process",
        thread="thread",
        reached={0: {1: 2}},
        standbys={0: [3]},
        coming={1: [4]},
        restoring={0: [5, 6]},
        tags={"zone": "a"},
        rack="rack",
        shutdown=True,
        topology=b"topology",
        endpoint="host:1",
        pystreams="0.1",
        python="3.11",
        worker=2,
    )
    assert state_of(said) == {TaskId(0, 1): 2, TaskId(2, 3): 300}


def test_an_assignment_of_an_older_version_is_read() -> None:
    info = decode_assignment_info(ASSIGNMENT_1)
    assert msgspec.structs.replace(info, whereabouts=b"") == AssignmentInfo(
        tasks=3,
        members=2,
        error="error",
        topology=b"topology",
        shutdown=True,
        threads=["one"],
        owners={0: [0, -1]},
        standbys={0: [1]},
        awaited={0: [2]},
        coming={1: [3]},
        follow_up_ms=500,
        endpoints=["host:1"],
        followers={0: [[0], []]},
    )
    assert whereabouts_of(info) == Whereabouts(
        threads=["one", "two"],
        endpoints=["host:1", ""],
        owners={0: [0, -1, 1]},
        followers={0: [[1], [], [0]]},
    )


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

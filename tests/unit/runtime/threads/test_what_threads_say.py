"""The first thread of a client that is asked sends the group what all of them know, and another one when it has
ended."""

from __future__ import annotations

from typing import Any
from unittest import mock

from pystreams.config import StreamsConfig
from pystreams.ids import TaskId
from pystreams.runtime.group.client_in_group import ClientInGroup
from pystreams.runtime.group.membership_data import (
    Subscription,
    decode_subscription,
    pack_offsets,
    pack_topology,
)
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.runtime.threads.thread_state import ThreadState

ON_DISK = {TaskId(0, 0): 5}
TOPOLOGY = [{"nodes": []}]


def threads() -> list[StreamThread]:
    """Two threads of one client."""
    context: Any = mock.MagicMock(
        config=StreamsConfig(application_id="app", application_server="here:8080"),
        process_id="p",
        inputs=dict.fromkeys(ON_DISK),
        in_group=ClientInGroup(),
    )
    context.built.fingerprint = "f"
    context.worker.number = 2
    context.local_state.return_value = ON_DISK
    context.in_use.now.topology = TOPOLOGY
    return [StreamThread(f"t{index}", index, context, mock.MagicMock(), 0) for index in (1, 2)]


def said(thread: StreamThread) -> Subscription:
    return decode_subscription(thread._subscription())


def knows_all(subscription: Subscription) -> bool:
    """Whether it has the state on the disk and the topology. It has both or neither."""
    both = {(b"", b""): False, (pack_offsets(ON_DISK), pack_topology(TOPOLOGY)): True}
    return both[subscription.on_disk, subscription.topology]


def test_one_of_two_threads_sends_state_and_topology() -> None:
    one, two = threads()
    assert [knows_all(said(thread)) for thread in (two, one, two)] == [True, False, True]
    two.state = ThreadState.PENDING_SHUTDOWN
    two._release([])
    assert knows_all(said(one))


def test_each_thread_says_who_it_is() -> None:
    for thread in threads():
        subscription = said(thread)
        assert (subscription.thread, subscription.process_id, subscription.worker) == (thread.name, "p", 2)
        assert (subscription.fingerprint, subscription.endpoint) == ("f", "here:8080")

"""Each member knows from the broker where queries for the keys of the others are answered, and everybody which versions
the members run."""

from __future__ import annotations

import platform
import re

import pytest

from pystreams.distribution import __version__
from pystreams.errors import StateError
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.standby_worker import counting
from tests.live.support import eventually

pytestmark = pytest.mark.kafka

STREAMS = {"group_protocol": "streams", "session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}
ENDPOINT = "127.0.0.1:7001"
PARTITIONS = {0, 1, 2}


def names(client: Streams) -> set[str]:
    return {thread.name for thread in client.metadata_for_local_threads()}


def told(client: Streams, keys: list[str]) -> set[str]:
    """Who has the keys that are not here, as the errors say; "" while the broker has not told it yet."""
    found = set()
    for key in keys:
        try:
            client.store("counts").get(key)
        except StateError as error:
            owner = re.search(r"is assigned to (.+?)[,;.]?(\s|$)", str(error))
            found.add(owner[1] if owner else "")
    return found


def test_members_know_the_endpoints_of_the_others_and_the_names_of_threads_without_one(cluster: Cluster):
    cluster.create("in", "out", partitions=3)
    keys = [f"k{n}" for n in range(30)]
    cluster.write("in", [(key, n, n) for n, key in enumerate(keys)])
    one = cluster.start(counting(cluster.path / "one", application_server=ENDPOINT, **STREAMS))
    two = cluster.start(counting(cluster.path / "two", **STREAMS))

    def shared() -> bool:
        here, there = set(one.store("counts").partitions), set(two.store("counts").partitions)
        return bool(here and there) and here | there == PARTITIONS

    eventually(lambda: shared() and one.caught_up() and two.caught_up())
    eventually(lambda: told(one, keys) == names(two))
    eventually(lambda: told(two, keys) == {ENDPOINT})
    with_one = {
        partition: place.active.endpoint
        for partition, place in two.endpoints("counts").items()
        if place.active
    }
    assert {partition for partition, endpoint in with_one.items() if endpoint == ENDPOINT} == set(
        one.store("counts").partitions
    )
    versions = __version__, platform.python_version(), True
    status = two.application_status()
    assert status is not None
    assert {(member.pystreams, member.python, member.same_program) for member in status.members} == {versions}
    endpoints = {member.thread: member.endpoint for member in status.members}
    assert endpoints == {**dict.fromkeys(names(one), ENDPOINT), **dict.fromkeys(names(two), "")}

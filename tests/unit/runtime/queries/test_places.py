"""A store says where its partitions are, as the group has told a thread of this process."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from pystreams.app import App
from pystreams.clock import ManualClock
from pystreams.dsl.builder import build_topology
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.client_in_group import ClientInGroup
from pystreams.runtime.group.membership_data import Host, Places, Whereabouts
from pystreams.runtime.queries.answers import Demands
from pystreams.runtime.queries.global_queries import local_store

TOLD = Whereabouts(["a", "b"], ["a:1", ""], {0: [1, 0]}, {0: [[0], []]})
KNOWN = {0: Places(Host("b"), (Host("a", "a:1"),)), 1: Places(Host("a", "a:1"))}
UNKNOWN = {0: Places(), 1: Places()}


@pytest.mark.parametrize(
    ("thread_count", "told", "places"),
    [
        pytest.param(2, TOLD, KNOWN, id="told"),
        pytest.param(2, Whereabouts(), UNKNOWN, id="not told yet"),
        pytest.param(0, TOLD, UNKNOWN, id="told before all threads ended"),
    ],
)
def test_places_are_known_as_long_as_a_thread_would_hear_of_others(
    thread_count: int, told: Whereabouts, places: dict[int, Places]
) -> None:
    app = App("app")
    app.table("in", key=str, value=int, name="latest")
    context: Any = mock.Mock(
        inputs={TaskId(0, p): frozenset({TopicPartition("in", p)}) for p in (0, 1)}, in_group=ClientInGroup()
    )
    context.in_group.heard(1, told)
    threads: Any = [mock.Mock()] * thread_count
    built = build_topology(app, app.config)
    store = local_store("latest", built, lambda: threads, context, ManualClock(), Demands())
    assert store.places == places

"""A member that the group refuses says how its topology differs, and from which one."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from pystreams.app import App
from pystreams.dsl.builder import build_topology
from pystreams.errors import TopologyError
from pystreams.runtime.group.membership_data import AssignmentInfo, pack_topology
from pystreams.runtime.group.refusal import refusal
from pystreams.take_over.last_run import LastRun, TopologyInUse
from pystreams.topology.fingerprint import shape

DIFFERS = "the topology of new differs from the one that the group runs"


def topology(topic: str, name: str = "counts") -> Any:
    app = App("counted")
    app.stream(topic, key=str, value=int).group_by_key().count(name=name)
    return shape(build_topology(app, app.config))


def why(info: AssignmentInfo, *, before: Any = None) -> str:
    """Why a member was refused whose topology reads ``new``. ``before``: the one that ran last."""
    last = None if before is None else LastRun(before)
    in_use = TopologyInUse(mock.Mock(), last, topology("new"), stores=True)
    error = refusal(info, in_use, "application counted, thread 1")
    assert isinstance(error, TopologyError)
    assert (error.what, error.where) == (
        f"the group refuses this member: {info.error}",
        "application counted, thread 1",
    )
    return error.why


def test_the_difference_is_that_to_the_topology_that_the_group_has_sent() -> None:
    sent = pack_topology(topology("new", name="other"))
    told = why(AssignmentInfo(error=DIFFERS, topology=sent), before=topology("old"))
    assert told.startswith("the first difference: ")
    assert "other" in told


def test_if_nobody_has_sent_its_topology_it_is_that_to_the_one_that_ran_last() -> None:
    told = why(AssignmentInfo(error=DIFFERS), before=topology("new", name="other"))
    assert told.startswith("the first difference to the topology that ran last: ")
    assert "other" in told


@pytest.mark.parametrize("before", [None, topology("new")], ids=["nothing ran", "the same ran last"])
def test_if_none_is_known_it_says_that_nobody_has_sent_it(before: Any) -> None:
    assert why(AssignmentInfo(error=DIFFERS), before=before) == (
        "where they differ is not known: the members have not sent their topologies, as they do not in a large group"
    )


def test_a_member_that_is_refused_for_another_reason_is_not_told_of_topologies() -> None:
    assert why(AssignmentInfo(error="the data cannot be read"), before=topology("old")) == ""

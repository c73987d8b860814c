"""The status of an application has what each member says of itself, whether the application or the broker assigns the
tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from pystreams.app import App
from pystreams.broker.port import Admin, GroupDescription, MemberDescription
from pystreams.dsl.builder import build_topology
from pystreams.runtime.group.application_status import MemberStatus, application_status, endpoints_of
from pystreams.runtime.group.membership_data import Subscription, encode

THREAD, PROCESS, ENDPOINT = "counted-1-StreamThread-1", "a-process", "10.0.0.1:8080"
VERSIONS = {"pystreams": "1.2.3", "python": "3.11.7"}

app = App("counted")
app.stream("in", key=str, value=int).to("out")
built = build_topology(app, app.config)


def by_the_application(thread: str = THREAD) -> MemberDescription:
    said = Subscription(built.fingerprint, PROCESS, thread, endpoint=ENDPOINT, **VERSIONS)
    return MemberDescription("m", "another-id", "10.0.0.1", user_data=encode(said))


def by_the_broker(thread: str = THREAD) -> MemberDescription:
    return MemberDescription(
        "m",
        thread,
        "10.0.0.1",
        process_id=PROCESS,
        fingerprint=built.fingerprint,
        endpoint=ENDPOINT,
        **VERSIONS,
    )


def of(*members: MemberDescription) -> Admin:
    """A group with these members."""
    admin = mock.Mock(spec=Admin)
    admin.partition_counts.return_value = {"in": 1, "out": 1}
    admin.describe_group.return_value = GroupDescription(members)
    admin.group_offsets.return_value = {}
    admin.beginning_offsets.side_effect = admin.end_offsets.side_effect = lambda asked: dict.fromkeys(
        asked, 0
    )
    return admin


def status(member: MemberDescription) -> MemberStatus:
    (shown,) = application_status(of(member), built, "earliest", reads_committed=False).members
    return shown


@pytest.mark.parametrize("member", [by_the_application(), by_the_broker()], ids=["application", "broker"])
def test_versions_program_and_endpoint_of_a_member_are_known(member: MemberDescription) -> None:
    shown = status(member)
    assert (shown.thread, shown.process_id, shown.host) == (THREAD, PROCESS, "10.0.0.1")
    assert (shown.pystreams, shown.python) == ("1.2.3", "3.11.7")
    assert (shown.fingerprint, shown.same_program) == (built.fingerprint, True)
    assert shown.endpoint == ENDPOINT
    assert endpoints_of(of(member), "counted") == [ENDPOINT]


@pytest.mark.parametrize("by", [by_the_application, by_the_broker])
def test_workers_share_the_id_of_their_state_directory_and_are_processes(by: Callable[[str], Any]) -> None:
    names = [f"counted-{PROCESS}-{worker}-StreamThread-{thread}" for worker in (1, 2) for thread in (1, 2)]
    found = application_status(of(*map(by, names)), built, "earliest", reads_committed=False)
    assert {member.process_id for member in found.members} == {PROCESS}
    assert len(found.members) == 4
    assert found.processes == 2


def test_of_a_member_of_another_kind_only_what_the_broker_sees_is_known() -> None:
    """Java's may have an endpoint, at which nobody answers as pystreams does."""
    java = MemberDescription("m", THREAD, "10.0.0.1", process_id=PROCESS, endpoint=ENDPOINT)
    shown = status(java)
    assert (shown.thread, shown.process_id) == (THREAD, PROCESS)
    assert (shown.pystreams, shown.python, shown.fingerprint, shown.endpoint) == ("", "", "", "")
    assert shown.same_program is None
    assert endpoints_of(of(java), "counted") == []

"""A member to which the broker assigns tasks says with its first heartbeat what it runs, and the group shows it."""

from __future__ import annotations

import platform
from types import SimpleNamespace
from typing import Any

from pystreams.broker.group_application import GroupApplication
from pystreams.broker.kafka.group_description import describe_group
from pystreams.broker.kafka.streams_heartbeat import joining
from pystreams.broker.port import MemberDescription
from pystreams.distribution import __version__

THREAD = "counted-1-StreamThread-1"


def application(endpoint: str) -> GroupApplication:
    return GroupApplication(
        subtopologies=(),
        inputs={},
        fingerprint="8367a249",
        process_id="a-process",
        thread=THREAD,
        tags={"zone": "north"},
        rack="",
        to_member=lambda _: ((), b""),
        shuts_down=lambda: False,
        difference=lambda: "",
        endpoint=endpoint,
    )


class Group:
    """A group whose members the broker describes, with what each has said when it joined."""

    group = "counted"

    def __init__(self, *joined: dict[str, Any]) -> None:
        nothing = SimpleNamespace(active_tasks=[], standby_tasks=[], warmup_tasks=[])
        members = [
            SimpleNamespace(
                member_id="m",
                client_id=THREAD,
                client_host="/10.0.0.1",
                process_id=said["process_id"],
                user_endpoint=said["user_endpoint"],
                client_tags=said["client_tags"],
                assignment=nothing,
            )
            for said in joined
        ]
        classic = SimpleNamespace(error_code=0, group_id=self.group, group_state="Dead", members=[])
        by_task = SimpleNamespace(error_code=0, group_id=self.group, group_state="Stable", members=members)
        self._answers = [SimpleNamespace(groups=[classic]), SimpleNamespace(groups=[by_task])]

    def ask(self, request: Any, read: Any, timeout_ms: float) -> Any:
        return read(self._answers.pop(0))


def shown(**said: Any) -> MemberDescription:
    (member,) = describe_group(Group(said)).members  # type: ignore[arg-type]
    return member


def test_the_group_shows_the_versions_the_program_and_the_endpoint_of_a_member() -> None:
    member = shown(**joining(application("10.0.0.1:8080"), 1_000))
    assert (member.pystreams, member.python) == (__version__, platform.python_version())
    assert (member.fingerprint, member.endpoint) == ("8367a249", "10.0.0.1:8080")


def test_a_member_without_an_endpoint_has_none() -> None:
    """The broker is told the name of the thread instead, which is no address."""
    assert shown(**joining(application(""), 1_000)).endpoint == ""


def test_a_member_of_another_kind_says_nothing_of_it() -> None:
    member = shown(process_id="p", user_endpoint=None, client_tags=[])
    assert (member.pystreams, member.python, member.fingerprint, member.endpoint) == ("", "", "", "")

"""The state of all processes of an application, as their group has it and as the page shows it."""

from __future__ import annotations

from pystreams.serving.group_status import Known
from pystreams.serving.live.look import TASKS_MAX, CommittedLook, GroupLook, MemberLook


def group_look(known: Known) -> GroupLook | None:
    """The last answer of the log; None if there was none yet."""
    status = known.status
    if status is None:
        return None
    inputs = sorted(status.inputs, key=lambda one: -one.lag)[:TASKS_MAX]
    return GroupLook(
        known.at_ms,
        status.rebalancing,
        [
            MemberLook(
                member.thread,
                member.process_id,
                member.host,
                [str(task) for task in member.tasks][:TASKS_MAX],
                [str(task) for task in member.standbys][:TASKS_MAX],
                member.same_program,
                member.endpoint,
            )
            for member in status.members[:TASKS_MAX]
        ],
        [
            CommittedLook(*one.partition, str(one.task_id), one.committed, one.end, one.lag)
            for one in sorted(inputs, key=lambda one: one.partition)
        ],
        [str(task) for task in status.tasks],
        known.trouble,
    )

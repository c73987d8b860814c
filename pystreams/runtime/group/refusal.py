"""The error of a member that the group refuses."""

from __future__ import annotations

from pystreams.errors import TopologyError
from pystreams.runtime.group.membership_data import OTHER_TOPOLOGY, AssignmentInfo, unpack_topology
from pystreams.take_over.last_run import TopologyInUse


def refusal(info: AssignmentInfo, in_use: TopologyInUse, where: str) -> TopologyError:
    """The error for an assignment with ``error``. If the topology is the reason, the error says how this member's
    differs. Raises ``TopologyError`` if the topology that the group runs cannot be read."""
    return TopologyError(
        f"the group refuses this member: {info.error}",
        where=where,
        why=_difference(info, in_use) if info.error.endswith(OTHER_TOPOLOGY) else "",
        hint="stop the other members first, or give the changed application another application_id",
    )


def _difference(info: AssignmentInfo, in_use: TopologyInUse) -> str:
    if info.topology:
        difference = in_use.difference_from(unpack_topology(info.topology))
        return f"the first difference: {difference}" if difference else ""
    if difference := in_use.difference_from():
        # The group may run another topology than the one that ran last here: it has not sent its topology.
        return f"the first difference to the topology that ran last: {difference}"
    return "where they differ is not known: the members have not sent their topologies, as they do not in a large group"

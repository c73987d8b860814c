"""The settings that do not fit ``group_protocol=streams``, with which the broker assigns the tasks (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pystreams.errors import ConfigError

#: The settings of the group, which the operator of the cluster sets, by those of an application that they replace.
_OF_THE_GROUP: Final[Mapping[str, str]] = {
    "num_standby_replicas": "streams.num.standby.replicas",
    "session_timeout_ms": "streams.session.timeout.ms",
    "heartbeat_interval_ms": "streams.heartbeat.interval.ms",
}
#: Features that brokers do not have yet (Kafka 4.3).
_MISSING: Final[Mapping[str, str]] = {
    "group_instance_id": "brokers do not have static members of such groups yet",
    "acceptable_recovery_lag": "brokers do not let tasks warm up yet",
    "max_warmup_replicas": "brokers do not let tasks warm up yet",
    "probing_rebalance_interval_ms": "brokers do not let tasks warm up yet",
    "rack_aware_assignment_tags": "brokers do not look at tags and racks yet",
    "rack_aware_assignment_strategy": "brokers do not look at tags and racks yet",
    "rack_aware_assignment_traffic_cost": "brokers do not look at tags and racks yet",
    "rack_aware_assignment_non_overlap_cost": "brokers do not look at tags and racks yet",
    "task_assignor_class": "the brokers assign the tasks",
}


def check_group_protocol(protocol: str, application_id: str, changed: Mapping[str, Any]) -> None:
    """``changed`` are the settings that do not have their default. Raises ``ConfigError`` for one without effect."""
    if protocol != "streams":
        return
    for name, of_group in _OF_THE_GROUP.items():
        if name in changed:
            raise ConfigError(
                f"{name} has no effect with group_protocol=streams",
                why=f"the brokers assign the tasks, and the group has the setting {of_group} instead",
                hint=f"kafka-configs.sh --alter --entity-type groups --entity-name {application_id} "
                f"--add-config {of_group}={changed[name]}, or group_protocol=classic",
            )
    for name, why in _MISSING.items():
        if name in changed:
            raise ConfigError(
                f"{name} has no effect with group_protocol=streams",
                why=why,
                hint=f"leave {name} out, or use group_protocol=classic",
            )

"""A setting of a client that is taken is in force: it changes what that client is told, and no other."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from pystreams.config.client_setting import PRECEDENCE, PREFIXES, ROLES, Role
from pystreams.config.client_table import CLIENT_SETTINGS

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka.settings import KafkaSettings

#: How to log in and encrypt holds together; it has tests of its own.
PLAIN = [
    name
    for name, row in CLIENT_SETTINGS.items()
    if not row.refused and not row.held_by and not name.startswith(("sasl.", "ssl.", "security."))
]
#: A value of each setting that is not the default; where there is only one, none.
CHANGED: dict[str, Any] = {
    "check.crcs": "false",
    "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
    "client.rack": "a",
    "compression.gzip.level": 4,
    "compression.lz4.level": 4,
    "compression.type": "lz4",
    "compression.zstd.level": 4,
    "enable.metrics.push": "false",
    "isolation.level": "read_committed",
    "max.in.flight.requests.per.connection": 4,
    "metadata.recovery.strategy": "none",
}
ONE_VALUE = {"acks", "enable.idempotence"}


def told(role: Role, given: dict[str, Any]) -> str:
    """All that both clients and pystreams' own parts take from the settings for one client."""
    kafka = KafkaSettings("127.0.0.1:1", client_settings=given)
    found: list[Any] = [kafka.membership("x", role)]
    if role == "producer":
        found += [kafka.producer("x"), kafka.exactly_once_producer("x"), kafka.producer_room_timeout_s]
    elif role == "admin":
        found += [kafka.admin("x")]
    else:
        found += [kafka.consumer("x", role), kafka.poll_records_max(role)]
    return repr(found)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ONE_VALUE])
def test_a_setting_of_a_client_changes_what_the_client_is_given(name: str, role: Role):
    codec = {"compression.type": name.split(".")[1]} if name.endswith(".level") and "comp" in name else {}
    given = {**codec, name: CHANGED.get(name, 70_001)}
    if (name, role) == ("isolation.level", "restore.consumer"):
        pytest.skip("stores are always restored from what is committed")
    if PREFIXES[PRECEDENCE[role][1]] in CLIENT_SETTINGS[name].clients:
        assert told(role, given) != told(role, codec)
        prefix = PRECEDENCE[role][-1]
        assert told(role, {**codec, prefix + name: given[name]}) == told(role, given)
        others = next(other for other in ROLES if other != role and PRECEDENCE[other][-1] != prefix)
        assert told(others, {prefix + name: given[name]}) == told(others, {})
    else:
        assert told(role, given) == told(role, codec)

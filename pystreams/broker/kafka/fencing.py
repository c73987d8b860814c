"""Ends the open transactions of members that are gone, before others take their tasks over.

An open transaction holds back everything that is read as committed: the tasks' offsets, their changelogs, and every
partition of the repartition topics that the dead member wrote to. It would end by its timeout. (Kafka Streams waits for
that.) The transaction coordinators know all open transactions, also the first one of a member that has never committed.
A member's transactional id is its client id in the group, or follows from its instance id, so the group knows whether
the member is alive: one that is, is never fenced.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from kafka import errors

from pystreams.broker.kafka.group_failures import refused
from pystreams.broker.kafka.transaction_coordination import TransactionConnection

log = logging.getLogger(__name__)

_UUID: Final = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def fence_the_dead(
    connection: TransactionConnection, group: str, transaction_timeout_ms: int, where: str
) -> list[str]:
    """End the open transactions of a group's former members; give their transactional ids. Raises
    ``BrokerUnavailableError``, ``BrokerError``."""
    where = f"group {group}, {where}"
    connection.forget_coordinators()
    try:
        # First the transactions, then the members: who opens one is a member before.
        ids = connection.open_transactions(transactional_ids_of(group))
        dead = sorted(ids - connection.members_ids(group)) if ids else []
        for transactional_id in dead:
            connection.wait_for_end(transactional_id, transaction_timeout_ms)
            log.info("%s: ended the open transaction of %s, which is gone", where, transactional_id)
    except errors.KafkaError as error:
        _refresh(connection, where)
        raise refused(error, "Transactions of former members cannot be ended", where) from None
    return dead


def transactional_ids_of(group: str) -> re.Pattern[str]:
    """The transactional ids of an application: its id, a process id, and one number (Java) or two (pystreams). Those of
    another application whose id begins in the same way do not match."""
    return re.compile(rf"{re.escape(group)}-{_UUID}(-\d+){{1,2}}")


def _refresh(connection: TransactionConnection, where: str) -> None:
    """One of the brokers that are known may be gone."""
    try:
        connection.refresh()
    except errors.KafkaError as error:
        log.debug("%s: %s", where, error)

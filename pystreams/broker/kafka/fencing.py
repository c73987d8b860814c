"""Ends the open transactions of members that are gone, before others take over their tasks. This includes transactions
that only hang (``hanging_transactions``).

An open transaction blocks all readers of committed records: of the tasks' offsets, of their changelogs, and of every
partition of the repartition topics that the dead member wrote to. It would end by its timeout. (Kafka Streams waits for
that.) The transaction coordinators know all open transactions, also the first one of a member that has never committed.
A member's transactional id is its client id in the group, or is derived from its instance id. So the group shows
whether the member is alive; a living member is never fenced.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Final

from kafka import errors

from pystreams.broker.kafka.group_failures import refused
from pystreams.broker.kafka.hanging_transactions import HangingTransactions, producers_with_open
from pystreams.broker.kafka.transaction_coordination import (
    ONGOING,
    OVER,
    REQUEST_TIMEOUT_MS,
    ListedTransaction,
    TransactionConnection,
)
from pystreams.broker.port import TransactionContent
from pystreams.clock import Clock, Deadline
from pystreams.errors import BrokerUnavailableError

log = logging.getLogger(__name__)

_NOT_ENDED: Final = "Transactions of former members cannot be ended"
_UUID: Final = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

#: For how long a client that is a member does not believe that its group is empty. Without a limit, a coordinator that
#: has lost the group would stop the application.
DOUBT_MS: Final = 30_000.0


class Doubt:
    """The doubt of a client that is a member of its group, whether a group that shows no members is empty."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadline: Deadline | None = None

    def lasts(self) -> bool:
        """The group shows no members. Whether not to believe it: for ``DOUBT_MS`` after the first call."""
        self._deadline = self._deadline or Deadline(self._clock, DOUBT_MS)
        return not self._deadline.expired()

    def end(self) -> None:
        """The group was believed."""
        self._deadline = None


def fence_the_dead(
    connection: TransactionConnection,
    content: TransactionContent,
    transaction_timeout_ms: int,
    where: str,
    *,
    doubt: Doubt | None,
) -> list[str]:
    """End the open transactions of a group's former members; returns their transactional ids. ``doubt``: that of a
    client that has a member in the group. Raises ``BrokerUnavailableError``, ``BrokerError``."""
    where = f"group {content.group}, {where}"
    connection.forget_coordinators()
    try:
        # First the transactions, then the members: a thread is a member before it opens a transaction.
        last = connection.transactions(transactional_ids_of(content.group))
        members = connection.members_ids(content.group) if last else set[str]()
        dead = _open(connection, content, [one for one in last if one.transactional_id not in members])
        if dead and doubt is not None and not members and doubt.lasts():
            raise _not_loaded(where)
        for transactional_id in dead:
            HangingTransactions(transactional_id, transaction_timeout_ms, content, where).end(connection)
            log.info("%s: ended the open transaction of %s, which is gone", where, transactional_id)
    except errors.KafkaError as error:
        _refresh(connection, where)
        raise refused(error, _NOT_ENDED, where) from None
    return dead


def _not_loaded(where: str) -> BrokerUnavailableError:
    """The error for a group without members although this client is one. Kafka 4.3 takes the end of the load of one
    epoch for that of another (``CoordinatorRuntime``), and answers before it has read the members. All of them would
    look dead."""
    return BrokerUnavailableError(
        _NOT_ENDED,
        where=where,
        why="the group shows no members, but this client is one: its coordinator may not have loaded them yet",
        hint="it is asked again; if the group has removed this client, the client soon learns of it",
    )


def _open(
    connection: TransactionConnection,
    content: TransactionContent,
    transactions: Collection[ListedTransaction],
) -> list[str]:
    """The transactional ids of the transactions that are ongoing, or over and still open in a partition."""
    over = {one.producer_id: one for one in transactions if one.state in OVER}
    hang = producers_with_open(connection, content, REQUEST_TIMEOUT_MS) & over.keys() if over else set[int]()
    found = [one for one in transactions if one.state == ONGOING] + [over[producer] for producer in hang]
    return sorted(one.transactional_id for one in found)


def transactional_ids_of(group: str) -> re.Pattern[str]:
    """The transactional ids of an application: its id, a process id, and one number (Java) or two (pystreams). Those of
    another application whose id begins in the same way do not match."""
    return re.compile(rf"{re.escape(group)}-{_UUID}(-\d+){{1,2}}")


def _refresh(connection: TransactionConnection, where: str) -> None:
    """Ask for the brokers again, because one of the known brokers may be gone."""
    try:
        connection.refresh()
    except errors.KafkaError as error:
        log.debug("%s: %s", where, error)

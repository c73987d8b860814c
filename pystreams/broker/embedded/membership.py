"""Membership in a group of the embedded log.

A member joins with a row in ``members`` and a lock on a file of its own; the kernel releases the lock when the process
dies. The first member that sees that the group needs an assignment (its ``epoch`` is ahead of ``assigned_epoch``) runs
the assignor on a snapshot, and writes the result if the epoch is still the same; the others use this result.

    poll ──► evict dead members ──► assign if necessary ──► claim the free partitions of the own target ──► Assigned
    claim ──► release the partitions that are not named

``poll`` claims the partitions that it returns in the same transaction, so that no other member can get them. A revoked
partition stays claimed until ``claim`` no longer names it. A claim is a row with a primary key, so a partition cannot
have two holders.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from pystreams.broker.embedded import groups
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.file_lock import FileLock, is_locked
from pystreams.broker.embedded.pulse import Pulse
from pystreams.broker.embedded.topics import load_topics, topics_version
from pystreams.broker.port import (
    Assign,
    Assigned,
    CommittedOffset,
    Lost,
    MemberAssignment,
    MemberEvent,
    MemberInfo,
)
from pystreams.clock import Clock
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition

#: How often a member checks whether the others are alive.
LIVENESS_INTERVAL_MS = 200.0


def evict_dead(database: Database, group: str, locks: Path, now_ms: float, except_for: str = "") -> None:
    """Remove the members whose process has died, or that have sent no heartbeat within their session timeout."""
    dead = [row for row in _members(database, group, except_for) if _is_dead(locks, row, now_ms)]
    if not dead:
        return
    with database.transaction():
        # Check again with the write lock: a slow member may have sent a heartbeat meanwhile.
        for row in _members(database, group, except_for):
            if _is_dead(locks, row, now_ms):
                groups.remove_member(database, group, row[0])
                (locks / row[1]).unlink(missing_ok=True)


def _members(database: Database, group: str, except_for: str) -> list[tuple[str, str, int, int, int]]:
    rows = database.rows(
        "SELECT member_id, lock_file, locked, session_timeout_ms, heartbeat_ms FROM members"
        " WHERE group_id = ? AND member_id <> ?",
        (group, except_for),
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def _is_dead(locks: Path, row: tuple[str, str, int, int, int], now_ms: float) -> bool:
    _, lock_file, locked, session_timeout_ms, heartbeat_ms = row
    return now_ms - heartbeat_ms > session_timeout_ms or bool(locked and not is_locked(locks / lock_file))


class EmbeddedMember:
    """See ``port.Member``."""

    def __init__(
        self,
        database: Database,
        locks: Path,
        clock: Clock,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        pulse: Pulse,
        closed: Callable[[Database], None],
    ) -> None:
        self.group = group
        self._database = database
        self._locks = locks
        self._clock = clock
        self._client_id = client_id
        self._topics = sorted(topics)
        self._user_data = user_data
        self._assign = assign
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._pulse = pulse
        self._closed = closed
        self._member_id = f"{client_id}-{uuid.uuid4()}"
        self._lock: FileLock | None = None
        self._joined = False
        self._rejoin_requested = False
        self._delivered_generation = -1
        self._held: frozenset[TopicPartition] = frozenset()
        self._waits_for_others = False
        self._seen_version = 0
        self._look_again = True
        self._seen_topics_version = -1
        self._next_heartbeat_ms = 0.0
        self._next_liveness_ms = 0.0

    @property
    def member_id(self) -> str:
        """The current id; it changes when the member rejoins after a loss."""
        return self._member_id

    def poll(self) -> list[MemberEvent]:
        """Also raises errors of the assignor; the next poll calls it again."""
        now_ms = self._clock.monotonic_ms()
        if not self._joined:
            self._join(now_ms)
        elif self._rejoin_requested:
            self._send_user_data()
        self.keep_alive()
        if now_ms >= self._next_heartbeat_ms:
            self._heartbeat(now_ms)
        if now_ms >= self._next_liveness_ms:
            evict_dead(self._database, self.group, self._locks, now_ms, except_for=self._member_id)
            self._next_liveness_ms = now_ms + LIVENESS_INTERVAL_MS
        elif not self._look_again and self._database.data_version() == self._seen_version:
            return []
        # Read before the state, so that the next poll sees a change that happens meanwhile.
        self._seen_version = self._database.data_version()
        self._look_again = False
        try:
            event = self._next_event()
        except BaseException:
            self._look_again = True
            raise
        return [] if event is None else [event]

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        """Raises ``BrokerError`` for a partition that was never in an ``Assigned``. Has no effect after a loss."""
        claimed = frozenset(partitions)
        if not claimed <= self._held:
            raise BrokerError(
                "A member cannot claim partitions that were not assigned to it",
                where=f"group {self.group}, member {self._member_id}: {sorted(claimed - self._held)}",
            )
        if claimed == self._held:
            return
        with self._database.transaction():
            if groups.is_member(self._database, self._member_id):
                groups.set_claims(self._database, self.group, self._member_id, claimed)
        self._held = claimed
        # The group's next assignment may have waited for this member to release these partitions.
        self._look_again = True

    def can_commit(self) -> bool:
        return self._joined

    def confirm(self) -> None:
        """Does nothing: a commit is one transaction, which checks the membership itself."""

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        offsets = groups.committed_offsets(self._database, self.group)
        return {partition: offsets.get(partition) for partition in partitions}

    def look(self) -> None:
        self._next_liveness_ms = 0.0

    def request_rejoin(self) -> None:
        self._rejoin_requested = True

    def keep_alive(self) -> None:
        self._pulse.polled(self.group, self._member_id, self._clock.monotonic_ms())

    def close(self, *, leave: bool | None = None) -> None:
        self._pulse.ended(self._member_id)
        try:
            if self._joined:
                self._depart(leave is not False)
        finally:
            self._joined = False
            self._release_lock()
            self._closed(self._database)

    def _join(self, now_ms: float) -> None:
        lock_file = f"member-{uuid.uuid4()}"
        self._release_lock()  # of an attempt that failed
        # The lock is taken before the row becomes visible, so that no other member takes this one for dead.
        self._lock = FileLock(self._locks / lock_file)
        self._lock.acquire()
        user_data = self._user_data()
        with self._database.transaction():
            self._database.write("INSERT OR IGNORE INTO consumer_groups (group_id) VALUES (?)", (self.group,))
            self._database.write(
                "INSERT INTO members (member_id, group_id, lock_file, session_timeout_ms, heartbeat_ms, topics,"
                " user_data) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self._member_id,
                    self.group,
                    lock_file,
                    self._session_timeout_ms,
                    int(now_ms),
                    json.dumps(self._topics),
                    user_data,
                ),
            )
            groups.ask_for_assignment(self._database, self.group)
        self._joined = True
        self._rejoin_requested = False
        self._look_again = True
        self._next_heartbeat_ms = now_ms + self._heartbeat_interval_ms

    def _depart(self, leave: bool) -> None:
        with self._database.transaction():
            if leave:
                groups.remove_member(self._database, self.group, self._member_id)
            else:
                self._database.write("UPDATE members SET locked = 0 WHERE member_id = ?", (self._member_id,))

    def _send_user_data(self) -> None:
        user_data = self._user_data()
        with self._database.transaction():
            self._database.write(
                "UPDATE members SET user_data = ? WHERE member_id = ?", (user_data, self._member_id)
            )
            groups.ask_for_assignment(self._database, self.group)
        self._rejoin_requested = False
        self._look_again = True

    def _heartbeat(self, now_ms: float) -> None:
        groups.send_heartbeat(self._database, self._member_id, now_ms)
        # Stored now, because the assignor reads it when any member joins or leaves, without asking this member.
        self._database.write(
            "UPDATE members SET user_data = ? WHERE member_id = ?", (self._user_data(), self._member_id)
        )
        self._next_heartbeat_ms = now_ms + self._heartbeat_interval_ms
        # The row may have been removed: check.
        self._look_again = True

    def _next_event(self) -> MemberEvent | None:
        if not groups.is_member(self._database, self._member_id):
            return self._lose()
        self._assign_if_needed()
        return self._next_assignment()

    def _lose(self) -> Lost:
        self._pulse.ended(self._member_id)
        self._release_lock()
        reason = f"member {self._member_id} was removed from group {self.group}: it was not heard of in time"
        self._member_id = f"{self._client_id}-{uuid.uuid4()}"
        self._joined = False
        self._held = frozenset()
        self._delivered_generation = -1
        self._look_again = True
        return Lost(reason)

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release(remove=True)
            self._lock = None

    def _assign_if_needed(self) -> None:
        """Run the assignor if the group's members or topics have changed since the last assignment."""
        with self._database.snapshot():
            row = self._database.row(
                "SELECT epoch, assigned_epoch, assigned_topics FROM consumer_groups WHERE group_id = ?",
                (self.group,),
            )
            assert row is not None
            epoch, assigned_epoch, assigned_topics = row
            version = topics_version(self._database)
            if epoch == assigned_epoch and version == self._seen_topics_version:
                return
            topics = self._partition_counts()
            if epoch == assigned_epoch and topics == assigned_topics:
                self._seen_topics_version = version
                return
            members = self._member_infos()
        # Outside of any transaction, because the assignor is the application's code and may query the log.
        result = self._assign(members)
        self._write_assignment(epoch, topics, members, result)

    def _partition_counts(self) -> str:
        """The partition counts of all topics that the group's members read, as JSON."""
        names: set[str] = set()
        for (topics,) in self._database.rows("SELECT topics FROM members WHERE group_id = ?", (self.group,)):
            names.update(json.loads(topics))
        found = load_topics(self._database, names)
        return json.dumps({name: len(topic.partition_ids) for name, topic in found.items()}, sort_keys=True)

    def _member_infos(self) -> list[MemberInfo]:
        rows = self._database.rows(
            "SELECT member_id, user_data FROM members WHERE group_id = ? ORDER BY member_id", (self.group,)
        )
        return [
            MemberInfo(member_id, user_data, frozenset(groups.claims(self._database, self.group, member_id)))
            for member_id, user_data in rows
        ]

    def _write_assignment(
        self, epoch: int, topics: str, members: list[MemberInfo], result: Mapping[str, MemberAssignment]
    ) -> None:
        """Write the targets, unless the group has changed or another member has written them."""
        member_ids = {member.member_id for member in members}
        targets = [
            (self.group, *partition, member_id)
            for member_id, assignment in result.items()
            for partition in assignment.partitions
        ]
        if len({target[1:3] for target in targets}) < len(targets) or not set(result) <= member_ids:
            raise BrokerError(
                "The assignor assigned a partition to two members, or to a member that does not exist",
                where=f"group {self.group}",
            )
        with self._database.transaction():
            row = self._database.row(
                "SELECT epoch, assigned_epoch, assigned_topics FROM consumer_groups WHERE group_id = ?",
                (self.group,),
            )
            if row is None or row[0] != epoch or (row[1] == epoch and row[2] == topics):
                self._look_again = True
                return
            self._database.write("DELETE FROM target_partitions WHERE group_id = ?", (self.group,))
            self._database.write_many(
                "INSERT INTO target_partitions (group_id, topic, partition, member_id) VALUES (?, ?, ?, ?)",
                targets,
            )
            self._database.write_many(
                "UPDATE members SET plan = ? WHERE member_id = ?",
                [
                    (result[member_id].user_data if member_id in result else b"", member_id)
                    for member_id in member_ids
                ],
            )
            self._database.write(
                "UPDATE consumer_groups SET generation = generation + 1, assigned_epoch = epoch, assigned_topics = ?"
                " WHERE group_id = ?",
                (topics, self.group),
            )

    def _next_assignment(self) -> Assigned | None:
        """The assignment, if it has changed for this member since the last one that it received."""
        with self._database.snapshot():
            if self._visible_target() is None:
                return None
        with self._database.transaction():
            # Read again with the write lock: a partition that is free now stays free until it is claimed.
            target = self._visible_target()
            if target is None:
                return None
            generation, visible, plan = target
            held = groups.claims(self._database, self.group, self._member_id) | visible
            groups.set_claims(self._database, self.group, self._member_id, held)
        self._held = frozenset(held)
        self._delivered_generation = generation
        return Assigned(generation, tuple(sorted(visible)), plan)

    def _visible_target(self) -> tuple[int, set[TopicPartition], bytes] | None:
        """Generation, target without partitions that others hold, plan; None if there is nothing to deliver."""
        row = self._database.row(
            "SELECT generation, epoch = assigned_epoch, plan FROM consumer_groups JOIN members USING (group_id)"
            " WHERE member_id = ?",
            (self._member_id,),
        )
        if row is None or not row[1]:
            # The member was removed, or an assignment is due: the next poll handles it.
            self._look_again = True
            return None
        generation, _, plan = row
        visible = groups.targets(self._database, self.group, self._member_id)
        visible -= groups.claimed_by_others(self._database, self.group, self._member_id)
        if generation == self._delivered_generation and visible <= self._held:
            return None
        return generation, visible, plan

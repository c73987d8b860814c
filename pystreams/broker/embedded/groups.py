"""Groups in the log's tables: committed offsets, members, targets, claims. All run in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pystreams.broker.embedded.database import Database
from pystreams.broker.port import CommittedOffset, GroupDescription, MemberDescription
from pystreams.errors import TaskMigratedError
from pystreams.ids import TopicPartition


def committed_offsets(database: Database, group: str) -> dict[TopicPartition, CommittedOffset]:
    """All committed offsets of a group."""
    rows = database.rows(
        "SELECT topic, partition, committed_offset, metadata FROM group_offsets WHERE group_id = ?", (group,)
    )
    return {
        TopicPartition(topic, partition): CommittedOffset(offset, text)
        for topic, partition, offset, text in rows
    }


def commit_offsets(database: Database, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    database.write_many(
        "INSERT INTO group_offsets (group_id, topic, partition, committed_offset, metadata) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET committed_offset = excluded.committed_offset, metadata = excluded.metadata",
        [
            (group, *partition, committed.offset, committed.metadata)
            for partition, committed in offsets.items()
        ],
    )


def claims(database: Database, group: str, member_id: str) -> set[TopicPartition]:
    """The partitions that a member holds."""
    rows = database.rows(
        "SELECT topic, partition FROM claimed_partitions WHERE group_id = ? AND member_id = ?",
        (group, member_id),
    )
    return {TopicPartition(topic, partition) for topic, partition in rows}


def targets(database: Database, group: str, member_id: str) -> set[TopicPartition]:
    """The partitions that the assignor assigned to a member."""
    rows = database.rows(
        "SELECT topic, partition FROM target_partitions WHERE group_id = ? AND member_id = ?",
        (group, member_id),
    )
    return {TopicPartition(topic, partition) for topic, partition in rows}


def claimed_by_others(database: Database, group: str, member_id: str) -> set[TopicPartition]:
    """The partitions that other members hold."""
    rows = database.rows(
        "SELECT topic, partition FROM claimed_partitions WHERE group_id = ? AND member_id <> ?",
        (group, member_id),
    )
    return {TopicPartition(topic, partition) for topic, partition in rows}


def set_claims(database: Database, group: str, member_id: str, partitions: Iterable[TopicPartition]) -> None:
    """Replace all claims of a member by ``partitions``, which must be free or already its own."""
    database.write("DELETE FROM claimed_partitions WHERE group_id = ? AND member_id = ?", (group, member_id))
    database.write_many(
        "INSERT INTO claimed_partitions (group_id, topic, partition, member_id) VALUES (?, ?, ?, ?)",
        [(group, *partition, member_id) for partition in partitions],
    )


def require_claims(
    database: Database, group: str, member_id: str, partitions: Collection[TopicPartition]
) -> None:
    """Raise ``TaskMigratedError`` unless the member exists and holds the partitions."""
    why = ""
    if not is_member(database, member_id):
        why = "the member was removed: it did not poll within its session timeout, or its process counted as dead"
    else:
        foreign = set(partitions) - claims(database, group, member_id) if partitions else set()
        if foreign:
            why = f"the member does not hold {', '.join(map(str, sorted(foreign)))}"
    if why:
        raise TaskMigratedError(
            "The commit was refused; nothing of it was written",
            where=f"group {group}, member {member_id}",
            why=why,
            hint="close the tasks and join the group again; another member continues from the last commit",
        )


def is_member(database: Database, member_id: str) -> bool:
    return database.row("SELECT 1 FROM members WHERE member_id = ?", (member_id,)) is not None


def send_heartbeat(database: Database, member_id: str, now_ms: float) -> None:
    database.write("UPDATE members SET heartbeat_ms = ? WHERE member_id = ?", (int(now_ms), member_id))


def member_ids(database: Database, group: str) -> list[str]:
    rows = database.rows("SELECT member_id FROM members WHERE group_id = ? ORDER BY member_id", (group,))
    return [member_id for (member_id,) in rows]


def describe(database: Database, group: str) -> GroupDescription:
    """The members with their assignments."""
    row = database.row("SELECT epoch <> assigned_epoch FROM consumer_groups WHERE group_id = ?", (group,))
    rows = database.rows(
        "SELECT member_id, user_data, plan FROM members WHERE group_id = ? ORDER BY member_id", (group,)
    )
    members = tuple(
        MemberDescription(
            member_id, member_id, "", tuple(sorted(targets(database, group, member_id))), user_data, plan
        )
        for member_id, user_data, plan in rows
    )
    # The last member that leaves asks for an assignment, which nobody is left to make.
    return GroupDescription(members, rebalancing=bool(members) and row is not None and bool(row[0]))


def remove_member(database: Database, group: str, member_id: str) -> None:
    """Remove a member and its claims; the group then needs a new assignment."""
    set_claims(database, group, member_id, ())
    database.write("DELETE FROM target_partitions WHERE group_id = ? AND member_id = ?", (group, member_id))
    if database.write("DELETE FROM members WHERE member_id = ?", (member_id,)):
        ask_for_assignment(database, group)


def ask_for_assignment(database: Database, group: str) -> None:
    database.write("UPDATE consumer_groups SET epoch = epoch + 1 WHERE group_id = ?", (group,))

"""A set of input records that takes little memory, however many there are: a private database of SQLite, whose file
SQLite deletes when it is closed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pystreams.cli.commands.dlq.letters import Identity
from pystreams.ids import TopicPartition

#: The number of positions in a block.
_POSITIONS: Final = 1_000

#: If the process is killed the set is worth nothing, so there is nothing to protect.
_SCHEMA: Final = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE identities (
        topic TEXT, partition INTEGER, block INTEGER, mark TEXT, PRIMARY KEY (topic, partition, block, mark)
    ) WITHOUT ROWID;
"""


class Block(NamedTuple):
    """Up to 1,000 positions of a source partition."""

    partition: TopicPartition
    number: int


class IdentitySet:
    """A set of identities. Those of one block can be taken and replaced together."""

    def __init__(self) -> None:
        # An empty name: a temporary file, of which only a few megabytes are in memory.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Delete the set."""
        self._database.close()

    def __contains__(self, identity: Identity) -> bool:
        found = self._database.execute(
            "SELECT 1 FROM identities WHERE topic = ? AND partition = ? AND block = ? AND mark = ?",
            _row(identity),
        )
        return found.fetchone() is not None

    def add(self, identity: Identity) -> bool:
        """Add an identity; whether it was not there before."""
        added = self._database.execute("INSERT OR IGNORE INTO identities VALUES (?, ?, ?, ?)", _row(identity))
        return added.rowcount == 1

    def marks(self, block: Block) -> Iterator[str]:
        """The identities of a block, as text, in order."""
        place = *block.partition, block.number
        rows = self._database.execute(
            "SELECT mark FROM identities WHERE topic = ? AND partition = ? AND block = ? ORDER BY mark", place
        )
        return (mark for (mark,) in rows)

    def replace(self, block: Block, marks: Iterable[str]) -> None:
        """Replace the identities of a block by what ``marks`` returned."""
        place = *block.partition, block.number
        self._database.execute(
            "DELETE FROM identities WHERE topic = ? AND partition = ? AND block = ?", place
        )
        rows = [(*place, mark) for mark in marks]
        self._database.executemany("INSERT OR IGNORE INTO identities VALUES (?, ?, ?, ?)", rows)


def block_of(identity: Identity) -> Block:
    """The block of a record's position."""
    return Block(identity.partition, identity.offset // _POSITIONS)


def _row(identity: Identity) -> tuple[str, int, int, str]:
    (topic, partition), number = block_of(identity)
    return topic, partition, number, f"{identity.offset}:{identity.digest}"

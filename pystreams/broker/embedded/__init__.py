"""The embedded log: a broker in one SQLite file, for the processes of one machine.

Begin with ``schema``, which describes the tables, and ``broker``, which opens the clients.

- ``producer`` appends and commits in one SQLite transaction, ``consumer`` reads, ``admin`` manages topics and offsets.
- ``membership`` holds the place of a client in a group: a row and a file lock that dies with its process. ``pulse``
  sends heartbeats while a function of the program takes long.
- ``log`` reads and appends batches of a partition, whose bytes are in ``columns``; ``topics`` is the catalogue, with
  the settings of ``topic_config``; ``groups`` holds offsets and members.
- ``cleaner`` applies retention and compaction in small slices.
- ``transactions`` writes under a transactional id, as hand-overs do.
- ``database`` opens the file and translates SQLite's errors; ``file_lock`` is a lock that the kernel releases.
"""

from __future__ import annotations

from pystreams.broker.embedded.broker import EmbeddedBroker

__all__ = ["EmbeddedBroker"]

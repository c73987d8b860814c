"""A process that the tests start and kill: ``python -m tests.unit.broker.embedded.log_worker LOG ROLE NAME``.

writer: commits batches to all partitions of ``t`` for ever, numbering them; prints after each commit.
member: joins group ``g``, adds 1 to the committed offset of every partition that it holds, for ever, and writes the
        same number as a record to ``out``; prints what it holds whenever that changes, and refused commits.
"""

from __future__ import annotations

import sys
import time

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Assigned, CommittedOffset
from pystreams.errors import TaskMigratedError
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import deal

PARTITIONS = tuple(TopicPartition("t", number) for number in range(4))


def write(broker: EmbeddedBroker, name: str) -> None:
    producer = broker.producer(name, name)
    number = 0
    while True:
        for partition in PARTITIONS:
            for part in range(50):
                producer.send(*partition, name.encode(), b"%d.%d" % (number, part), number, ())
        producer.commit({}, None)
        print("committed", number, flush=True)
        number += 1


def belong(broker: EmbeddedBroker, name: str) -> None:
    producer = broker.producer(name, name)
    member = broker.member(name, "g", ["t"], name.encode, deal("t", len(PARTITIONS)))
    positions: dict[TopicPartition, int] = {}
    while True:
        for event in member.poll():
            held = event.partitions if isinstance(event, Assigned) else ()
            positions = {
                partition: positions.get(partition, committed.offset if committed else 0)
                for partition, committed in member.committed(held).items()
            }
            if isinstance(event, Assigned):
                member.claim(held)
            print("holds", *(partition.partition for partition in held), flush=True)
        for (_, number), position in positions.items():
            producer.send("out", number, name.encode(), b"%d" % position, 1, ())
        try:
            offsets = {partition: CommittedOffset(position + 1) for partition, position in positions.items()}
            producer.commit(offsets, member)
        except TaskMigratedError:
            producer.abort()
            print("refused", flush=True)
            positions = {}
        else:
            positions = {partition: committed.offset for partition, committed in offsets.items()}
        time.sleep(0.002)


def main() -> None:
    path, role, name = sys.argv[1:]
    broker = EmbeddedBroker(path, session_timeout_ms=1_000, heartbeat_interval_ms=200)
    {"writer": write, "member": belong}[role](broker, name)


if __name__ == "__main__":
    main()

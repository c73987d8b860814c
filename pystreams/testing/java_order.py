"""The order in which Kafka Streams' test driver processes queues whose heads have the same timestamp."""

from __future__ import annotations

from pystreams.engine.input.record_queue import RecordQueue
from pystreams.engine.processors.java_heap import JavaHeap


class JavaOrder:
    """Takes one record at a time from the queue with the least head timestamp, ties as in ``java.util.PriorityQueue``.

    Ties are frequent: one record may write to two repartition topics. Implements ``partition_group.HeadOrder``.
    """

    def __init__(self) -> None:
        self._heap: JavaHeap[RecordQueue] = JavaHeap(lambda queue: queue.head_timestamp)

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, queue: RecordQueue) -> None:
        self._heap.offer(queue)

    def poll(self) -> RecordQueue:
        return self._heap.poll()

    def run_end(self, queue: RecordQueue, end: int) -> int:
        return min(end, queue.position + 1)

"""A process of pystreams that says when its restores begin and end:

    python -m tests.benchmarks.restore.restoring JOB application_id=… bootstrap_servers=… state_dir=…

``peers/java`` prints the same lines for Kafka Streams: ``restore-start PARTITION OFFSETS TIME`` and
``restore-end PARTITION RECORDS TIME``, the time in milliseconds since 1970.
"""

from __future__ import annotations

import sys
import time

from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from tests.benchmarks.kafka import jobs


class RestoreTimes:
    """Prints them."""

    def on_restore_start(
        self, partition: TopicPartition, store: str, start_offset: int, end_offset: int
    ) -> None:
        _print("restore-start", partition, end_offset - start_offset)

    def on_batch_restored(
        self, partition: TopicPartition, store: str, next_offset: int, records: int
    ) -> None:
        """Only the beginning and the end count."""

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        _print("restore-end", partition, records)


def _print(what: str, partition: TopicPartition, records: int) -> None:
    print(what, partition.partition, records, time.time_ns() // 1_000_000, flush=True)


def main() -> None:
    """Run the job until SIGTERM."""
    app = getattr(jobs, sys.argv[1])
    settings = dict(argument.split("=", 1) for argument in sys.argv[2:])
    streams = Streams(app, app.config.override(settings))
    streams.set_restore_listener(RestoreTimes())
    streams.run()


if __name__ == "__main__":
    main()

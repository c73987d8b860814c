"""The stateless job without a library: a loop over the same client, with the same types, batches and commits.

What no Python library over this client can beat by much. It keeps the order of records, commits what it has delivered,
and fails on delivery errors; rebalances, restarts and failures are not its concern.

    python -m tests.benchmarks.peers.plain_loop --bootstrap-servers localhost:9092 --group g --input i --output o
"""

from __future__ import annotations

import argparse
import signal
import time
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from tests.benchmarks.kafka.jobs import Event, visit

_BATCH = 1_000


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--bootstrap-servers", "--group", "--input", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--commit-interval-ms", type=int, default=1_000)
    given = parser.parse_args()
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap_servers,
            "group.id": given.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 5,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": given.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 100,
            "partitioner": "murmur2_random",
            "delivery.report.only.error": True,
            "on_delivery": _delivered,
        }
    )
    consumer.subscribe([given.input])
    try:
        _loop(consumer, producer, given.output, given.commit_interval_ms / 1000, stopped)
    finally:
        consumer.close()


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def _loop(consumer: Consumer, producer: Producer, output: str, interval_s: float, stopped: list[int]) -> None:
    decode, encode = msgspec.json.Decoder(Event).decode, msgspec.json.Encoder().encode
    produce = producer.produce
    next_commit = time.monotonic() + interval_s
    uncommitted = False
    while not stopped:
        for message in consumer.consume(_BATCH, 0.1):
            if message.error() is not None:
                raise KafkaException(message.error())
            uncommitted = True
            event = decode(message.value() or b"")
            if event.kind == "heartbeat":
                continue
            timestamp = message.timestamp()[1]
            record: tuple[Any, ...] = (output, encode(visit(event)), message.key(), -1, None, None, timestamp)
            while True:
                try:
                    produce(*record)
                    break
                except BufferError:
                    producer.poll(0.05)
        if uncommitted and time.monotonic() >= next_commit:
            producer.flush()
            consumer.commit(asynchronous=False)
            uncommitted, next_commit = False, time.monotonic() + interval_s
    producer.flush()
    if uncommitted:
        consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main()

"""Apache Kafka as a broker: confluent-kafka moves the data, kafka-python holds the membership."""

from __future__ import annotations

from pystreams.broker.kafka.broker import KafkaBroker

__all__ = ["KafkaBroker"]

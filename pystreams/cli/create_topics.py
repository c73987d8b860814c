"""``pystreams run --create-topics``: the topics that an application uses, made before it starts."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from typing import Any

from pystreams.broker.connecting import open_broker
from pystreams.cli.logs import command_log
from pystreams.clock import SystemClock
from pystreams.config import StreamsConfig
from pystreams.runtime.startup.client_start import build_topology
from pystreams.topics.users_topics import missing_topics, unknown_topics


def create_topics(application: Any, config: StreamsConfig, partitions: int) -> None:
    """Create the inputs and outputs that are missing, and say which. Raises ``TopologyError``, ``BrokerError``."""
    built = build_topology(application, config)
    with closing(open_broker(config, SystemClock())) as broker, closing(broker.admin()) as admin:
        missing = missing_topics(built, config, admin.partition_counts(), partitions)
        admin.create_topics(missing)
    by_width: dict[int, list[str]] = defaultdict(list)
    for topic in missing:
        by_width[topic.partitions].append(topic.name)
    for width, names in sorted(by_width.items()):
        plural = "" if width == 1 else "s"
        command_log.info("Created %s with %d partition%s.", ", ".join(names), width, plural)
    if missing:
        command_log.info(
            "That is for development: the number of partitions and the retention of topics are decided before"
            " anything is in them (pystreams topics create)."
        )
    for unknown in unknown_topics(built):
        command_log.info("Not created, because nobody can tell their names yet: %s.", unknown)

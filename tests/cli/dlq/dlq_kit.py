"""Dead letters in the log of the working directory, as an application writes them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import TopicSpec
from pystreams.errors import DroppedRecordError
from pystreams.handlers import ErrorContext, dead_letter_record
from pystreams.ids import TaskId
from pystreams.record import Headers

KEPT = {"retention.ms": "-1"}


def failure(
    value: bytes | None = b"two",
    *,
    topic: str | None = "orders",
    partition: int = 0,
    offset: int = 0,
    key: bytes | None = b"a",
    timestamp: int = 1_000,
    headers: Headers = (),
    step: str = "parse",
    error: Exception | None = None,
    **more: Any,
) -> ErrorContext:
    """A record of topic orders for which a step failed."""
    return ErrorContext(
        topic,
        partition,
        offset,
        timestamp,
        headers,
        step,
        TaskId(0, partition),
        key,
        value,
        None,
        None,
        error or ValueError("not a number"),
        **more,
    )


def too_late(value: bytes, *, late_ms: int = 40, **more: Any) -> ErrorContext:
    """A record that step count dropped because it was too late."""
    facts = {
        "step": "count",
        "stream_time": str(1_000 + late_ms),
        "late_ms": str(late_ms),
        "grace_ms": str(late_ms - 1),
    }
    error = DroppedRecordError("step count dropped the record: the window has closed", facts=facts)
    return failure(value, error=error, **{"step": "count", **more})


def create(*topics: str, partitions: int = 1) -> None:
    """Create topics that keep everything."""
    with closing(EmbeddedBroker(Path(".pystreams/log.db"))) as broker, closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec(topic, partitions, KEPT) for topic in topics])


def bury(*failures: ErrorContext, topic: str = "dead") -> None:
    """Write their dead letters, as the engine does: the key chooses the partition."""
    with (
        closing(EmbeddedBroker(Path(".pystreams/log.db"))) as broker,
        closing(broker.producer("test", "test")) as producer,
    ):
        for context in failures:
            producer.send(topic, None, *dead_letter_record(context))
        producer.commit({}, None)


def read(pystreams: Any, topic: str) -> list[dict[str, Any]]:
    """The records of a topic, as ``consume --json`` shows them."""
    shown = pystreams("consume", topic, "--json")
    assert shown.code == 0, shown.err
    return [json.loads(line) for line in shown.lines]


def values(pystreams: Any, topic: str = "orders") -> list[Any]:
    """The values in a topic."""
    return [record["value"] for record in read(pystreams, topic)]


def whole(err: str) -> str:
    """A whole message, without the folder of the test."""
    assert "Traceback" not in err
    assert err.startswith("Error: ") or "\nError: " in err
    return err[err.index("Error: ") :].replace(str(Path.cwd()), "FOLDER")

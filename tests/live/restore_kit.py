"""What tests about restores have in common: an application that counts, who listens, and logs that keep it waiting."""

from __future__ import annotations

import threading
from typing import Any

from pystreams.app import App
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from tests.live.support import Log, caught_up


class Listener:
    """Remembers what was restored: (partition, first offset, end offset) and records by partition."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int, int]] = []
        self.ended: dict[str, int] = {}

    def on_restore_start(
        self, partition: TopicPartition, store: str, start_offset: int, end_offset: int
    ) -> None:
        self.started.append((str(partition), start_offset, end_offset))

    def on_batch_restored(
        self, partition: TopicPartition, store: str, next_offset: int, records: int
    ) -> None:
        """Counted at the end."""

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        self.ended[str(partition)] = records


def counting(log: Log, *, persistent: bool = True, **settings: object) -> App:
    """Counts the records of ``in`` by key."""
    app = log.app("counting", **settings)
    counts = app.stream("in", key=str, value=int).group_by_key().count(name="counts", persistent=persistent)
    counts.to_stream().to("out")
    return app


def with_listener(log: Log, app: App) -> Listener:
    """Run an application to its end with a listener."""
    listener = Listener()
    streams = log.start(app, prepare=lambda streams: streams.set_restore_listener(listener))
    caught_up(streams)
    streams.close()
    return listener


class Held:
    """A consumer that gives nothing before it may."""

    def __init__(self, inner: Any, go_on: threading.Event) -> None:
        self._inner = inner
        self._go_on = go_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        return self._inner.poll(timeout_ms) if self._go_on.wait(timeout_ms / 1000) else []


class HoldingBroker:
    """A log whose changelogs are not read before they may."""

    holds: type[Held] = Held

    def __init__(self, inner: Any, go_on: threading.Event) -> None:
        self._inner = inner
        self._go_on = go_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def consumer(self, client_id: str, purpose: str = "main") -> Any:
        consumer = self._inner.consumer(client_id, purpose)
        return self.holds(consumer, self._go_on) if client_id.endswith("-restore-consumer") else consumer

"""What the pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pystreams.metrics import Sample
from pystreams.runtime.health import Health
from pystreams.runtime.streams import Streams


class Watched(Protocol):
    """A running application: one client, or the clients of several processes. Called from the server's threads."""

    def health(self) -> Health: ...

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        """The metrics of each client, by its id."""
        ...


class WatchedClient:
    """The client of this process. ``lag_max``: how many records may wait while it is ready; None: any number."""

    def __init__(self, streams: Streams, lag_max: int | None) -> None:
        self._streams = streams
        self._lag_max = lag_max

    def health(self) -> Health:
        return self._streams.health(lag_max=self._lag_max)

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        return {self._streams.client_id: self._streams.metrics.snapshot()}

"""The interface through which the pages read an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from pystreams.clock import SystemClock
from pystreams.metrics import Sample
from pystreams.runtime.health import Health
from pystreams.runtime.streams import Streams
from pystreams.serving.lag import Lag, lag_now
from pystreams.serving.live.client_look import ClientLooks
from pystreams.serving.live.look import Described, Look, Shown
from pystreams.serving.threads import ClientThreads, client_threads


class Watched(Shown, Protocol):
    """A running application: one client, or the clients of several processes. Called from the server's threads."""

    def application_id(self) -> str | None:
        """The application's id, at once; None: it is not known yet."""
        ...

    def health(self) -> Health: ...

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        """The metrics of each client, by its id."""
        ...

    def lag(self) -> Lag:
        """The lag of the application in all its processes. Takes a few seconds at most."""
        ...

    def threads(self) -> Sequence[ClientThreads]:
        """The threads of each client."""
        ...


class WatchedClient:
    """The client of this process. ``lag_max``: the highest lag with which it is ready; None: any lag."""

    def __init__(self, streams: Streams, lag_max: int | None) -> None:
        self._streams = streams
        self._lag_max = lag_max
        self._clock = SystemClock()
        self._looks = ClientLooks(streams, clock=self._clock)

    def application_id(self) -> str | None:
        return self._streams.config.application_id

    def health(self) -> Health:
        return self._streams.health(lag_max=self._lag_max)

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        return {self._streams.client_id: self._streams.metrics.snapshot()}

    def lag(self) -> Lag:
        return lag_now(self._looks.group, self._clock)

    def threads(self) -> Sequence[ClientThreads]:
        return [client_threads(self._streams, self._clock)]

    def described(self) -> Described | None:
        return self._looks.described()

    def look(self, *, with_group: bool) -> Look:
        client = self._looks.look(with_group=with_group)
        alone = msgspec.structs.replace(client, group=None)
        return Look(client.at_ms, self.health(), [alone], [], client.group)

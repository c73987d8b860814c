"""Applications whose stores are asked for over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pystreams import App, Streams
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, running
from tests.serving.http_kit import Page, get


class Asked:
    """A running application, and its HTTP server."""

    def __init__(self, log: Log, streams: Streams, server: HttpServer) -> None:
        self.log = log
        self.streams = streams
        self.server = server

    def get(self, path: str, **headers: str) -> Page:
        return get(self.server.address, path, **headers)

    def key(self, store: str, key: str, parameters: str = "") -> Page:
        return self.get(f"/stores/{quote(store, safe='')}/keys/{quote(key, safe='')}{parameters}")

    def pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        """The entries of all pages, each asked for with the cursor of the one before."""
        joint = "&" if "?" in path else "?"
        cursor = ""
        while cursor is not None:
            page = self.get(path + (f"{joint}cursor={cursor}" if cursor else ""))
            assert page.status == 200, page.text
            yield page.json["entries"]
            cursor = page.json["cursor"]

    def all(self, path: str) -> list[dict[str, Any]]:
        return [entry for page in self.pages(path) for entry in page]


def counting(app: App) -> None:
    """Records of ``in`` by key, in the store ``counts``."""
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")


@contextmanager
def asked(
    folder: Path,
    build: Callable[[App], object],
    *,
    partitions: int = 2,
    others: Sequence[str] = (),
    token: str | None = None,
    **settings: Any,
) -> Iterator[Asked]:
    """The application that ``build`` makes, which reads topic ``in`` and perhaps ``others``, and runs when it is given.
    Its stores are read with the ``token``, if there is one."""
    log = Log(folder)
    log.create("in", *others, partitions=partitions)
    app = log.app("asked", **settings)
    build(app)
    streams = Streams(app, broker=log.broker)
    try:
        with HttpServer(
            Address("127.0.0.1", 0), WatchedClient(streams, None), LocalStores(streams), token=token
        ) as server:
            streams.start()
            running(streams)
            yield Asked(log, streams, server)
    finally:
        streams.close(60_000)
        log.close()

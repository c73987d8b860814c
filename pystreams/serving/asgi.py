"""The pages of an application for a web server of the user's own."""

from __future__ import annotations

import ssl

from starlette.types import ASGIApp

from pystreams.runtime.streams import Streams
from pystreams.serving.access import Access
from pystreams.serving.live.events import MOUNTED_STREAM_S
from pystreams.serving.live.routes import LivePage
from pystreams.serving.pages import pages
from pystreams.serving.stores.asking import Instance
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.peers import Peers
from pystreams.serving.watched import WatchedClient


def http_app(
    streams: Streams,
    *,
    token: str | None = None,
    lag_max: int | None = None,
    peers_tls: ssl.SSLContext | None = None,
) -> ASGIApp:
    """An ASGI application with ``/stores``, ``/metrics``, ``/live``, ``/ready``, ``/lag`` and the live page of a
    client, to be mounted in one of Starlette, FastAPI or any other framework for ASGI, at any path.

    ``token``: stores and the live page require it (``Authorization: Bearer TOKEN``); None: the server around the
    application decides who may read. ``lag_max``: the highest lag with which ``/ready`` succeeds; None: any.
    ``peers_tls``: the TLS settings for requests to other instances over HTTPS; None: they use HTTP. The application may
    be made before the client is started, and answers until the process ends.
    """
    peers = Peers(token, peers_tls)
    answerer = Instance(LocalStores(streams), peers.ask)
    watched = WatchedClient(streams, lag_max)
    live_page = LivePage(watched, with_stores=True, peers=peers, stream_s=MOUNTED_STREAM_S)
    return pages(watched, answerer, ["*"], Access(token), live_page)

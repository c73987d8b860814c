"""All pages of an application, at one address. Each module of pages has its own routes."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from pystreams.serving import health_pages
from pystreams.serving.access import Access
from pystreams.serving.guards import Guards
from pystreams.serving.live.routes import LivePage
from pystreams.serving.refusals import FRESH, HANDLERS
from pystreams.serving.stores import pages as store_pages
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.stores.key_page import KeyPage
from pystreams.serving.watched import Watched


def pages(
    watched: Watched,
    answerer: Answerer | None,
    hosts: Sequence[str],
    access: Access | None = None,
    live_page: LivePage | None = None,
) -> Guards:
    """The pages of an application. Requests must be for one of ``hosts`` (``*``: any): if only programs of this machine
    may read, this prevents that a web site reads through a browser under its own name. Without ``answerer`` no stores
    are served, without ``live_page`` there is no live page."""
    paths = [*health_pages.PATHS]
    routes: list[BaseRoute] = [*health_pages.HealthPages(watched).routes()]
    if answerer is not None:
        paths += store_pages.PATHS
        routes += store_pages.store_routes(answerer)
    if live_page is not None:
        paths += live_page.PATHS
        routes += live_page.routes()

    def overview(request: Request) -> Response:
        if live_page is not None and "text/html" in request.headers.get("accept", ""):
            return live_page.html()
        # Its base URL would be that of the web application around this one.
        own = request.url.replace(query="")
        lines = [] if live_page is None else [f"the live page, for a browser: {own}"]
        return PlainTextResponse("".join(f"{line}\n" for line in [*lines, *paths]), headers=FRESH)

    app = Starlette(routes=[Route("/", overview), *routes], exception_handlers=HANDLERS)
    who = watched.application_id, hosts, access or Access()
    if answerer is None:
        return Guards(app, *who)
    key_page = KeyPage(answerer, app)
    return Guards(key_page, *who, key_page.at_once)

"""All pages of an application, at one address. Each module of pages brings its routes."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pystreams.serving import health_pages
from pystreams.serving.access import Access, Gate
from pystreams.serving.limits import Limits
from pystreams.serving.refusals import FRESH, HANDLERS
from pystreams.serving.stores import pages as store_pages
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.watched import Watched


def pages(
    watched: Watched, answerer: Answerer | None, hosts: Sequence[str], access: Access | None = None
) -> Starlette:
    """The pages of an application. Requests must be for one of ``hosts`` (``*``: any): where only programs of the same
    machine may read, no web site must come in through a browser, under a name of its own. ``answerer`` None: no stores
    are served."""
    paths = health_pages.PATHS if answerer is None else (*health_pages.PATHS, *store_pages.PATHS)

    def overview(_request: Request) -> Response:
        return PlainTextResponse("".join(f"{path}\n" for path in paths), headers=FRESH)

    routes = [Route("/", overview), *health_pages.health_routes(watched)]
    if answerer is not None:
        routes += store_pages.store_routes(answerer)
    guards = [
        Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
        Middleware(Gate, access or Access()),
        Middleware(Limits),
    ]
    return Starlette(routes=routes, middleware=guards, exception_handlers=HANDLERS)

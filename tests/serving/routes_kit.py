"""All that an HTTP server of pystreams serves. Its routes are asked for, so none can be forgotten."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from pystreams.serving.live.routes import LivePage
from pystreams.serving.pages import pages

#: What a page may be asked as: by a program, by a browser, by a program that computes in columns, by another instance.
KINDS: Final[Sequence[dict[str, str]]] = (
    {},
    {"Accept": "text/html"},
    {"Accept": "application/vnd.apache.arrow.stream"},
    {"Pystreams-Part": "1"},
)


def paths(store: str, key: str) -> list[str]:
    """A path for each route, also of one that is not there; with this store and key."""
    nobody: Any = Mock()
    app: Any = pages(nobody, nobody, ["*"], live_page=LivePage(nobody, with_stores=True))._app
    while not isinstance(app, Starlette):
        app = app._others
    values = {"store": store, "key": key}
    return [path for route in app.routes for path in _paths_of(route, values)] + [
        "/nothing",
        "/stores/nothing",
    ]


def _paths_of(route: BaseRoute, values: dict[str, str]) -> Iterator[str]:
    match route:
        case Route():
            # A parameter that is not known here ends the test: say above what it is to be.
            yield route.path_format.format(**values)
        case Mount(app=StaticFiles(directory=folder)):
            assert folder is not None
            yield from (f"{route.path}/{file.name}" for file in Path(folder).iterdir())
        case _:
            raise AssertionError(f"a kind of route that nothing is known of: {route}")


def all_answers(address: object, store: str, key: str, **headers: str) -> Iterator[tuple[str, str, int, str]]:
    """For each path, as whoever may ask: path, kind, status, and head and body of the answer."""
    for path in paths(store, key):
        for kind in KINDS:
            request = urllib.request.Request(f"http://{address}{path}", headers={**headers, **kind})
            try:
                answer = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                text = f"{answer.headers}{_body(answer).decode('latin-1')}"
                yield path, str(kind), answer.status, text


def _body(answer: Any) -> bytes:
    """All of it, or of a stream of events the first one."""
    if "event-stream" not in answer.headers["Content-Type"]:
        return bytes(answer.read())
    return next(line for line in answer if line.startswith(b"data: "))

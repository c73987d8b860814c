"""The live page works below any path of a web application of the user's own, which it does not keep from ending."""

from __future__ import annotations

import urllib.request
from contextlib import closing

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from pystreams import Streams
from pystreams.serving import asgi
from pystreams.serving.asgi import http_app
from tests.live.support import caught_up, running
from tests.serving.http_kit import get
from tests.serving.live.conftest import PATIENCE_MS
from tests.serving.queries_kit import counting
from tests.serving.test_mounted_app import web_server

pytestmark = pytest.mark.live


@pytest.mark.slow
def test_all_parts_of_the_page_work_below_any_path(log, visit):
    log.create("in")
    app = log.app("counting")
    counting(app)
    with (
        closing(Streams(app, broker=log.broker)) as streams,
        web_server(Starlette(routes=[Mount("/ops/pystreams", http_app(streams))])) as address,
    ):
        streams.start()
        running(streams)
        # Without the slash at the end, the web framework sends the browser there.
        page = visit(address, path="/ops/pystreams")
        expect(page).to_have_url(f"http://{address}/ops/pystreams/", timeout=PATIENCE_MS)
        log.write("in", [("a", 1, n) for n in range(7)])
        caught_up(streams)
        # Its events, its style sheet, its links and its look-up.
        expect(page.locator("#processed")).to_have_text("7", timeout=PATIENCE_MS)
        assert page.evaluate("document.styleSheets[0].cssRules.length") > 0
        links = page.locator("footer a").evaluate_all("all => all.map(link => new URL(link.href).pathname)")
        assert [get(address, link).status for link in links] == [200] * 4
        page.get_by_label("Store", exact=True).select_option("counts")
        page.get_by_label("Key", exact=True).fill("a")
        page.get_by_role("button", name="Look up").click()
        expect(page.locator("#lookup-answer")).to_contain_text("7", timeout=PATIENCE_MS)


def test_a_web_server_ends_although_a_page_is_open(log, monkeypatch):
    # The server ends when the stream does.
    monkeypatch.setattr(asgi, "MOUNTED_STREAM_S", 1.0)
    log.create("in")
    app = log.app("counting")
    counting(app)
    with closing(Streams(app, broker=log.broker)) as streams:
        with web_server(http_app(streams)) as address:
            events = urllib.request.urlopen(f"http://{address}/events", timeout=60)
            assert events.readline() == b"retry: 1000\n"
        # The server has ended: so has the stream, as a whole.
        with events:
            assert b"data: " in events.read()

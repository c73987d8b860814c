"""The pages of an application can be a part of a web application of the user's own."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from pystreams import Streams
from pystreams.serving.address import Address
from pystreams.serving.asgi import http_app
from tests.live.support import Log, caught_up, running
from tests.serving.http_kit import get

pytestmark = pytest.mark.live

TOKEN = "0123456789abcdef-of-a-test"


@contextmanager
def web_server(app):
    """The address of a server of the user's own."""
    address = Address("127.0.0.1", 0)
    listening = address.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield Address("127.0.0.1", listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


@pytest.fixture
def streams(tmp_path):
    log = Log(tmp_path)
    log.create("in")
    app = log.app("counting")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    client = Streams(app, broker=log.broker)
    yield client
    client.close(60_000)
    log.close()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_it_answers_below_the_path_where_it_is_mounted(streams, tmp_path, token):
    own = Route("/", lambda request: PlainTextResponse("of the user's own"))
    app = Starlette(routes=[own, Mount("/streams", http_app(streams, token=token))])
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with web_server(app) as address:
        assert get(address, "/streams/ready").status == 503
        live_page = f"the live page, for a browser: http://{address}/streams/"
        for path in ("/streams/", "/streams/?page=1"):
            assert get(address, path, **headers).text.splitlines()[0] == live_page
        assert get(address, "/streams/stores/counts/keys/a", **headers).json["code"] == "unreachable"
        streams.start()
        running(streams)
        caught_up(streams)
        assert get(address, "/").text == "of the user's own"
        assert get(address, "/streams/metrics").status == 200
        assert get(address, "/streams/stores/counts/keys/a", **headers).json["code"] == "absent"
        assert get(address, "/streams/stores/count", **headers).json["hint"] == "did you mean counts?"
        if token is not None:
            assert get(address, "/streams/stores").status == 401

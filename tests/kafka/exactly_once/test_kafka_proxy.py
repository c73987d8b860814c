"""The proxy between clients and a broker leaves no connection open when it is closed."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from tests.kafka.exactly_once.proxy import Proxy
from tests.live.support import eventually


@pytest.mark.parametrize("accepted", [False, True])
def test_closing_closes_what_is_just_being_connected(accepted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_answer(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", no_answer)
    for _ in range(10):
        proxy = Proxy()
        with socket.create_connection(("127.0.0.1", proxy.port)):
            if accepted:
                eventually(lambda proxy=proxy: proxy._serving)
            proxy.close()
        # A socket that was forgotten warns, and a warning is an error.
        gc.collect()

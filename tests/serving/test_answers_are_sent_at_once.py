"""No part of an answer waits until the client has acknowledged another part: clients take 40 ms for that."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing
from pathlib import Path

from tests.serving.queries_kit import asked, counting


def test_the_sockets_of_the_server_send_what_they_have(tmp_path: Path):
    with asked(tmp_path, counting) as application:
        address = application.server.address
        with closing(http.client.HTTPConnection(address.host, address.port, timeout=120)) as client:
            client.request("GET", "/stores/counts")
            assert client.getresponse().status == 200
            (connection,) = application.server._server.server_state.connections
            sending = connection.transport.get_extra_info("socket")
            assert sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

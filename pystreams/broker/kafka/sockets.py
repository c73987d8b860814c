"""Sockets for the membership protocol's client that are always closed.

kafka-python loses a socket if its connection is refused, takes too long or is abandoned, and leaves it to the garbage
collector. It creates sockets by a proxy's URL scheme; this one uses no proxy, and closes a socket that does not
connect.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from kafka.net.inet import KafkaNetSocket

_SCHEME: Final = "direct"
#: For kafka-python's setting ``proxy_url``.
CLOSED_IF_NOT_CONNECTED: Final = f"{_SCHEME}://"


class _DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """Registers itself for its URL scheme."""

    SCHEMES = (_SCHEME,)

    async def sock_connect(
        self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None
    ) -> socket.socket:
        try:
            connected: socket.socket = await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
            return connected
        except BaseException:  # also GeneratorExit, if the client is closed meanwhile
            sock.close()
            raise

"""Sockets of the membership protocol's client that nobody has to find by collecting garbage.

kafka-python forgets a socket whose connection is refused, takes too long or is given up before it is made. It asks for
sockets by the scheme of a proxy; ours goes through none, and closes what does not become a connection.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from kafka.net.inet import KafkaNetSocket

_SCHEME: Final = "direct"
#: For kafka-python's setting ``proxy_url``.
CLOSED_IF_NOT_CONNECTED: Final = f"{_SCHEME}://"


class _DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """Registers itself for its scheme."""

    SCHEMES = (_SCHEME,)

    async def sock_connect(
        self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None
    ) -> socket.socket:
        try:
            connected: socket.socket = await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
            return connected
        except BaseException:  # also GeneratorExit, when the client is closed meanwhile
            sock.close()
            raise

"""The address that the server listens on: this machine only, unless the user names another one."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from typing import Final

from pystreams.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"

_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)

#: Addresses that stand for all of a machine.
_ALL: Final = ("0.0.0.0", "::")  # noqa: S104 - it is compared, not listened on

_HINT: Final = (
    "write HOST:PORT, for example 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses of this machine"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port. Port 0 is any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address in ``HOST:PORT``, or in a port alone, which only this machine can reach. Raises
        ``ConfigError``."""
        host, _, port = text.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or LOOPBACK
        if not _PORT.fullmatch(port) or int(port) > 65_535:
            raise ConfigError(f"{text!r} is not an address to listen on", hint=_HINT)
        return cls(host, int(port))

    def listen(self) -> socket.socket:
        """A listening socket. Raises ``ConfigError`` if this machine does not have the address, or the port is in
        use."""
        try:
            family, _, _, _, where = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            # ``::`` is for all addresses of this machine, also those of IPv4.
            dual = where[0] == "::" and socket.has_dualstack_ipv6()
            return socket.create_server(where[:2], family=family, backlog=128, dualstack_ipv6=dual)
        except (OSError, ValueError) as error:  # a name that cannot be one is a ValueError
            raise ConfigError(
                f"nothing can listen on {self}",
                why=_reason(error),
                hint="choose another address or port: port 0 is any free one",
            ) from None

    @property
    def name(self) -> str:
        """The host as URLs have it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def reached_by_others(self) -> str | None:
        """The address for other processes, ``host:port``. For a wildcard address (``0.0.0.0``) it is the address of the
        machine's name; None if that is a loopback address."""
        if self.host not in _ALL:
            return str(self)
        try:
            own = socket.gethostbyname(socket.gethostname())
        except OSError:
            return None
        return None if ipaddress.ip_address(own).is_loopback else f"{own}:{self.port}"

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


def _reason(error: OSError | ValueError) -> str:
    """The message of the operating system or of the resolver of names, without Python's additions."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)

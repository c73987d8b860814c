"""The address that the server listens on: this machine only, unless the user names another one."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from typing import Final

import msgspec

from pystreams.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"

_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)

#: Addresses that stand for all of a machine.
_ALL: Final = ("0.0.0.0", "::")  # noqa: S104 - it is compared, not listened on

_HINT: Final = (
    "write HOST:PORT, for example 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses of this machine"
)


class Endpoint(msgspec.Struct, frozen=True):
    """Where other processes can query an instance, ``host:port``. ``only_here``: the address is of use on this machine
    alone, because the instance listens on all addresses, and others know no name for any of them."""

    address: str
    only_here: bool = False


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

    def endpoint(self) -> Endpoint:
        """The address for other processes. For a wildcard address (``0.0.0.0``) it is the address of the machine's
        name; if that is a loopback address (Debian's 127.0.1.1) or there is none, it is ``localhost``, for this machine
        only."""
        if self.host not in _ALL:
            return Endpoint(str(self))
        try:
            own = socket.gethostbyname(socket.gethostname())
        except OSError:
            own = LOOPBACK
        if ipaddress.ip_address(own).is_loopback:
            return Endpoint(f"localhost:{self.port}", only_here=True)
        return Endpoint(f"{own}:{self.port}")

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


def _reason(error: OSError | ValueError) -> str:
    """The message of the operating system or of the resolver of names, without Python's additions."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)

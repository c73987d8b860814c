"""The parts of a request's head that the server needs, read in one pass over its headers."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

#: The headers by the names of their fields. If a header occurs twice, the first one counts.
_FIELDS: Final = {
    b"host": "host",
    b"authorization": "authorization",
    b"content-length": "content_length",
    b"transfer-encoding": "transfer_encoding",
    b"accept": "accept",
    b"pystreams-part": "part",
}


def path_of(scope: Scope) -> str:
    """The path of a request within the pages of the application. If the application is mounted, its own paths follow
    the path of the mount."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class Head:
    """The path of a request, and the headers that decide about it (empty: the request does not have the header)."""

    __slots__ = ("accept", "authorization", "content_length", "host", "part", "path", "transfer_encoding")

    def __init__(self, scope: Scope) -> None:
        self.path = path_of(scope)
        self.host = self.authorization = self.content_length = self.transfer_encoding = ""
        self.accept = self.part = ""
        for name, value in reversed(scope["headers"]):
            field = _FIELDS.get(name)
            if field is not None:
                setattr(self, field, value.decode("latin-1"))

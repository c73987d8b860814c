"""A schema registry on the loopback interface, for what the mock of the clients cannot do: refuse, fail, want a login.

It answers as Confluent's does: paths, error codes and the fields that the clients read.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from pystreams.serde.schema_registry.clients import close_clients


class RegistryServer:
    """Schemas and subjects. ``frozen`` subjects take no other schema (409); ``login`` is asked for if it is set;
    ``failing`` is the status that every request gets while it is set, ``failing_posts`` that of those that register or
    look up; ``requests`` are those that came."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.frozen: set[str] = set()
        self.login: str | None = None
        self.failing: int | None = None
        self.failing_posts: int | None = None
        self.requests: list[str] = []
        self.lock = threading.Lock()
        self.url = ""

    def answer(self, method: str, target: str, login: str | None, body: Any) -> tuple[int, Any]:
        path = urlsplit(target).path
        with self.lock:
            self.requests.append(f"{method} {target}")
            failing = self.failing or (self.failing_posts if method == "POST" else None)
            if failing is not None:
                return failing, _error(failing * 100 + 1, "in trouble")
            if self.login is not None and login != self.login:
                return 401, _error(40101, "Unauthorized")
            for pattern, answer in _ROUTES[method].items():
                found = re.fullmatch(pattern, path)
                if found:
                    return answer(self, body, *map(unquote, found.groups()))
            return 404, _error(40400, f"no such path: {path}")

    def register(self, body: Any, subject: str) -> tuple[int, Any]:
        known = self._id_of(body)
        versions = self.subjects.setdefault(subject, [])
        if known not in versions:
            if subject in self.frozen and versions:
                return 409, _error(409, "Schema being registered is incompatible with an earlier schema")
            known = known or len(self.schemas) + 1
            self.schemas[known] = body
            versions.append(known)
        return 200, self._registered(subject, known)

    def look_up(self, body: Any, subject: str) -> tuple[int, Any]:
        if subject not in self.subjects:
            return 404, _error(40401, f"Subject '{subject}' not found.")
        known = self._id_of(body)
        if known not in self.subjects[subject]:
            return 404, _error(40403, "Schema not found")
        return 200, self._registered(subject, known)

    def by_id(self, body: Any, id_: str) -> tuple[int, Any]:
        if int(id_) not in self.schemas:
            return 404, _error(40403, f"Schema {id_} not found")
        return 200, {**self.schemas[int(id_)], "guid": _guid(int(id_))}

    def by_guid(self, body: Any, guid: str) -> tuple[int, Any]:
        return self.by_id(body, str(UUID(guid).int))

    def version(self, body: Any, subject: str, version: str) -> tuple[int, Any]:
        versions = self.subjects.get(subject)
        if not versions:
            return 404, _error(40401, f"Subject '{subject}' not found.")
        return 200, self._registered(subject, versions[-1 if version == "latest" else int(version) - 1])

    def _id_of(self, body: Any) -> int | None:
        return next((id_ for id_, schema in self.schemas.items() if schema == body), None)

    def _registered(self, subject: str, id_: int) -> dict[str, Any]:
        version = self.subjects[subject].index(id_) + 1
        return {**self.schemas[id_], "id": id_, "guid": _guid(id_), "subject": subject, "version": version}


_ROUTES: Any = {
    "POST": {
        "/subjects/([^/]+)/versions": RegistryServer.register,
        "/subjects/([^/]+)": RegistryServer.look_up,
    },
    "GET": {
        "/schemas/ids/([^/]+)": RegistryServer.by_id,
        "/schemas/guids/([^/]+)": RegistryServer.by_guid,
        "/subjects/([^/]+)/versions/([^/]+)": RegistryServer.version,
    },
}


def _guid(id_: int) -> str:
    return str(UUID(int=id_))


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[RegistryServer]:
    """A registry that runs, behind TLS if it is given; at the end the clients that know it are closed."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            login = self.headers.get("Authorization", "").removeprefix("Basic ")
            status, answer = registry.answer(
                self.command,
                self.path,
                base64.b64decode(login).decode() or None,
                json.loads(body) if body else None,
            )
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815 - http.server looks for these names

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            registry.url = f"https://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield registry
        finally:
            close_clients()
            server.shutdown()
            thread.join()

"""Queries to the other instances of an application, over HTTP, with the same paths as those of clients.

An instance marks its request with a header, and gets only the other instance's own part of the answer, in MessagePack.
An instance that is asked in this way does not ask others, so there are no circular requests.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from functools import cached_property
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from anyio import CapacityLimiter, to_thread

from pystreams.serving.query_errors import QueryError, UnknownStoreError, UnreachableError, query_error
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.questions import Question, parameters_of, part_of

#: The header of a request by another instance.
PART_HEADER: Final = "Pystreams-Part"

#: The content type of the answer to such a request.
PART: Final = "application/vnd.pystreams.part"

#: An instance that does not accept a connection within this time counts as unreachable.
_CONNECT_S: Final = 3.0

#: The timeout of an answer: longer than an instance may wait for its threads, shorter than a query may take.
_ANSWER_S: Final = 9.5

#: The largest number of requests to other instances at once; more wait for their turn.
_REQUESTS_MAX: Final = 32

#: The largest number of idle connections that are kept.
_IDLE_MAX: Final = 32

#: Errors that show that the other side had ended the connection before it saw the request.
_ENDED: Final = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

#: A larger answer is not read: a page has a limit.
_ANSWER_BYTES_MAX: Final = 64 << 20

encode_part: Final = msgspec.msgpack.Encoder().encode
_decode_part: Final = msgspec.msgpack.Decoder(StorePart).decode


class _Refusal(msgspec.Struct):
    """The JSON form of an answer that is an error."""

    code: str
    error: str
    why: str = ""
    hint: str = ""


class Peers:
    """Asks other instances, which are named by their endpoints, ``host:port``. Connections are reused."""

    def __init__(self, token: str | None = None, trusted: ssl.SSLContext | None = None) -> None:
        """``token``: the common token of all instances. ``trusted``: the TLS settings, if they use HTTPS; None: they
        use HTTP."""
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._trusted = trusted
        self._idle = _IdleConnections()

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        # It belongs to the event loop, which does not run yet while this object is made.
        return CapacityLimiter(_REQUESTS_MAX)

    def close(self) -> None:
        """Close the connections, when no more requests will follow."""
        self._idle.close()

    async def ask(self, endpoint: str, question: Question) -> StorePart:
        """The part of the answer that the instance has. Raises ``QueryError``, and ``OSError`` if it cannot
        be reached."""
        return await to_thread.run_sync(
            self._ask, endpoint, question, abandon_on_cancel=True, limiter=self._limiter
        )

    def _ask(self, endpoint: str, question: Question) -> StorePart:
        status, content = self.get(endpoint, _target(question), part_of(question))
        if status != 200:
            raise _error(endpoint, status, content)
        try:
            return _decode_part(content)
        except msgspec.MsgspecError as error:
            raise UnreachableError(
                "another instance of the application answers in another form",
                where=endpoint,
                why=str(error)[:200],
                hint="it may run another version of pystreams, or be another server: check its application_server",
            ) from error

    def get(self, endpoint: str, target: str, part: str = "1") -> tuple[int, bytes]:
        """Status and content of the answer to a request for a path, and for a part of what is there (``part_of``).
        Raises ``ConnectionError``, and ``UnreachableError`` if one side does not trust the other."""
        while True:
            connection = idle = self._idle.take(endpoint)
            try:
                connection = connection or self._new_connection(endpoint)
                answer = self._exchange(connection, target, part)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                if connection is not None:
                    connection.close()
                # The other side ends idle connections, so try again with another one.
                if idle is None or not isinstance(error, _ENDED):
                    raise self._unreached(endpoint, error) from error
            else:
                self._idle.put(endpoint, connection)
                return answer

    def _exchange(self, connection: http.client.HTTPConnection, target: str, part: str) -> tuple[int, bytes]:
        if connection.sock is None:
            _connect(connection)
        connection.request("GET", target, headers={PART_HEADER: part, **self._headers})
        response = connection.getresponse()
        content = response.read(_ANSWER_BYTES_MAX)
        if not response.isclosed():
            raise http.client.HTTPException("the answer is larger than a page can be")
        return response.status, content

    def _new_connection(self, endpoint: str) -> http.client.HTTPConnection:
        if self._trusted is None:
            return http.client.HTTPConnection(endpoint, timeout=_CONNECT_S)
        return http.client.HTTPSConnection(endpoint, timeout=_CONNECT_S, context=self._trusted)

    def _unreached(self, endpoint: str, error: Exception) -> Exception:
        why = str(error)
        if self._trusted is not None and isinstance(error, _ENDED):
            why = f"it does not accept the certificate of this one, or stops: {why}"
        elif not isinstance(error, ssl.SSLError):
            return ConnectionError(f"{endpoint} does not answer: {error}")
        return UnreachableError(
            "another instance of the application cannot be asked over HTTPS",
            where=endpoint,
            why=why,
            hint="start all instances with --http-cert and --http-key, with --http-ca if the system does not trust the "
            "authority of the certificates, and if there is --http-client-ca, with certificates that this one has "
            "signed; each certificate is for the host of its instance's application_server",
        )


def _connect(connection: http.client.HTTPConnection) -> None:
    connection.connect()
    connection.sock.settimeout(_ANSWER_S)


class _IdleConnections:
    """Idle connections, by endpoint. Only the most recently used ones are kept, so that connections to endpoints that
    are gone do not stay for ever. Any thread may call these methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The most recently used connection is at the end.
        self._connections: list[tuple[str, http.client.HTTPConnection]] = []

    def take(self, endpoint: str) -> http.client.HTTPConnection | None:
        with self._lock:
            for number in reversed(range(len(self._connections))):
                if self._connections[number][0] == endpoint:
                    return self._connections.pop(number)[1]
            return None

    def put(self, endpoint: str, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._connections.append((endpoint, connection))
            oldest = self._connections.pop(0)[1] if len(self._connections) > _IDLE_MAX else None
        if oldest is not None:
            oldest.close()

    def close(self) -> None:
        with self._lock:
            for _, connection in self._connections:
                connection.close()
            self._connections.clear()


def _target(question: Question) -> str:
    store = f"/stores/{quote(question.store, safe='')}"
    place = "entries" if question.key is None else f"keys/{quote(question.key, safe='')}"
    return f"{store}/{place}?{urlencode(parameters_of(question))}"


def _error(endpoint: str, status: int, content: bytes) -> QueryError:
    try:
        refusal = msgspec.json.decode(content, type=_Refusal)
    except msgspec.MsgspecError:
        refusal = _Refusal("", f"it answers with status {status}")
    if status in (401, 403):
        return UnreachableError(
            "another instance of the application does not answer this one",
            where=endpoint,
            why=refusal.error,
            hint="start all instances with the same --http-token-file",
        )
    if refusal.code == UnknownStoreError.code:
        # The other instance runs another version of the program, or is another application.
        return UnreachableError("another instance does not have the store", where=endpoint, why=refusal.error)
    return query_error(refusal.code, refusal.error, where=endpoint, why=refusal.why, hint=refusal.hint)

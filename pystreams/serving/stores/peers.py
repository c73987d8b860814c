"""The other instances of an application: they are asked over HTTP, with the same paths as clients ask for.

An instance marks its request with a header, and gets the part of the answer that the other one has itself, in
MessagePack. An instance that is asked in this way asks nobody else: so no request goes round in a circle.
"""

from __future__ import annotations

import http.client
import ssl
from collections import defaultdict, deque
from functools import cached_property
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from anyio import CapacityLimiter, to_thread

from pystreams.serving.query_errors import QueryError, UnknownStoreError, UnreachableError, query_error
from pystreams.serving.stores.parts import Part
from pystreams.serving.stores.questions import Question, parameters_of

#: The header of a request by another instance.
PART_HEADER: Final = "Pystreams-Part"

#: The type of the answer to it.
PART: Final = "application/vnd.pystreams.part"

#: An instance that does not answer in this time is not there.
_TIMEOUT_S: Final = 5.0

#: So many requests to other instances are on their way at once; more wait for their turn.
_REQUESTS_MAX: Final = 32

#: A larger answer is not read: a page has a limit.
_ANSWER_BYTES_MAX: Final = 64 << 20

encode_part: Final = msgspec.msgpack.Encoder().encode
_decode_part: Final = msgspec.msgpack.Decoder(Part).decode


class _Refusal(msgspec.Struct):
    """The JSON form of an answer that is an error."""

    code: str
    error: str
    why: str = ""
    hint: str = ""


class Peers:
    """Asks other instances, which are named by their endpoints, ``host:port``. Connections are used again."""

    def __init__(self, token: str | None = None, trusted: ssl.SSLContext | None = None) -> None:
        """``token``: the one that all instances have. ``trusted``: whom to trust, if they speak HTTPS; None: they speak
        HTTP."""
        self._headers = {PART_HEADER: "1", **({} if token is None else {"Authorization": f"Bearer {token}"})}
        self._trusted = trusted
        self._idle: defaultdict[str, deque[http.client.HTTPConnection]] = defaultdict(deque)

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        # It belongs to the event loop, which does not run yet while this object is made.
        return CapacityLimiter(_REQUESTS_MAX)

    def close(self) -> None:
        """End the connections, when nobody asks any more."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    async def ask(self, endpoint: str, question: Question) -> Part:
        """The part of the answer that the instance has. Raises ``QueryError``, and ``OSError`` if it cannot
        be reached."""
        return await to_thread.run_sync(
            self._ask, endpoint, question, abandon_on_cancel=True, limiter=self._limiter
        )

    def _ask(self, endpoint: str, question: Question) -> Part:
        target = _target(question)
        idle = self._idle[endpoint]
        used = bool(idle)
        connection = idle.pop() if idle else self._connected(endpoint)
        try:
            status, content = self._exchange(connection, target)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if not used:
                raise ConnectionError(f"{endpoint} does not answer: {error}") from error
            # The other side ends connections that nobody uses: all that are idle may be too old.
            idle.clear()
            return self._ask(endpoint, question)
        idle.append(connection)
        if status == 200:
            return _decode_part(content)
        raise _error(endpoint, status, content)

    def _exchange(self, connection: http.client.HTTPConnection, target: str) -> tuple[int, bytes]:
        connection.request("GET", target, headers=self._headers)
        response = connection.getresponse()
        content = response.read(_ANSWER_BYTES_MAX)
        if not response.isclosed():
            raise http.client.HTTPException("the answer is larger than a page can be")
        return response.status, content

    def _connected(self, endpoint: str) -> http.client.HTTPConnection:
        if self._trusted is None:
            return http.client.HTTPConnection(endpoint, timeout=_TIMEOUT_S)
        return http.client.HTTPSConnection(endpoint, timeout=_TIMEOUT_S, context=self._trusted)


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
        # It runs another version of the program, or is another application.
        return UnreachableError("another instance does not have the store", where=endpoint, why=refusal.error)
    return query_error(refusal.code, refusal.error, where=endpoint, why=refusal.why, hint=refusal.hint)

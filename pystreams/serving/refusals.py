"""Answers to requests that are refused: the reason and the advice, in one JSON form.

    {"code": "absent", "error": "store counts has no key 'x'", "why": "...", "hint": "..."}

``code`` is for programs. Parts that are empty are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pystreams.errors import StreamsError
from pystreams.serving.query_errors import QueryError, as_query_error

log = logging.getLogger(__name__)

#: Caches between server and client must not store answers, and browsers must not guess that an answer is a page.
FRESH: Final[Mapping[str, str]] = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

#: A client should repeat a request that was refused with 503 after this number of seconds.
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": "1"}

_CODES: Final = {404: "unknown-path", 405: "wrong-method"}


def refusal(status: int, code: str, error: str, *, why: str = "", hint: str = "", **headers: str) -> Response:
    """The answer to a request that is refused."""
    return _answer(status, {"code": code, "error": error, "why": why, "hint": hint}, headers)


def _answer(status: int, parts: Mapping[str, str | int], headers: Mapping[str, str]) -> Response:
    """The parts that are not empty, as JSON."""
    content = {name: part for name, part in parts.items() if part}
    return JSONResponse(content, status, headers={**FRESH, **headers})


def answer_to(error: QueryError) -> Response:
    """The answer to a query without a result."""
    headers = {**error.headers, **(RETRY_AFTER if error.status == 503 else {})}
    why = "; ".join(filter(None, (error.why, error.where)))
    parts = {"code": error.code, "error": error.what, "why": why, "hint": error.hint}
    return _answer(error.status, {**parts, **error.fields}, headers)


async def query_refused(_request: Request, error: Exception) -> Response:
    """The answer to a query without a result, or to one that failed, for example because the application is ending."""
    return answer_to(as_query_error(error))


async def path_refused(_request: Request, error: Exception) -> Response:
    """The answer to an unknown path, and to a method other than GET."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    hint = "GET / lists the paths; a key is at /stores/STORE/keys/KEY" if error.status_code == 404 else ""
    return refusal(error.status_code, code, error.detail, hint=hint, **dict(error.headers or {}))


#: They are ``async``, so that they use no thread: none of them waits.
HANDLERS: Final = {
    QueryError: query_refused,
    Exception: query_refused,
    StreamsError: query_refused,
    HTTPException: path_refused,
}

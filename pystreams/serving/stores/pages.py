"""``/stores``: the stores of the application, and their entries by key and by range.

/stores                           all stores: kind, types, partitions
/stores/NAME                      one of them
/stores/NAME/keys/KEY             the value of a key; its windows, sessions or versions
/stores/NAME/entries?from=&to=    entries in the order of their keys, page by page

Answers are JSON, pages of entries on request Arrow's stream format.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pystreams.serving.query_errors import AbsentError, TooSlowError, unknown_store
from pystreams.serving.refusals import FRESH
from pystreams.serving.stores.arrow import ARROW, arrow_stream
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.stores.parts import Part, settled
from pystreams.serving.stores.peers import PART, PART_HEADER, encode_part
from pystreams.serving.stores.questions import Question, cursor_of, question_of

T = TypeVar("T")

_JSON: Final = "application/json"

#: A query ends after so long, whoever is still at work for it.
QUERY_S: Final = 10.0

#: A larger position is left out: proxies refuse answers with headers of more than 8 KB, or of 4 KB.
_POSITION_BYTES_MAX: Final = 2_048

PATHS: Final = ("/stores",)


class _Entries(msgspec.Struct):
    """A page. With ``cursor`` the next one is asked for; null: there is none."""

    entries: list[msgspec.Raw]
    cursor: str | None


def store_routes(answerer: Answerer) -> list[Route]:
    """The routes below ``/stores``."""

    async def stores(_request: Request) -> Response:
        return _json({"stores": await _in_time(answerer.stores())})

    async def store(request: Request) -> Response:
        name = request.path_params["store"]
        infos = {info.name: info for info in await _in_time(answerer.stores())}
        if name not in infos:
            raise unknown_store(name, infos)
        return _json(infos[name])

    async def of_key(request: Request) -> Response:
        return await _answer(answerer, request, request.path_params["key"])

    async def entries(request: Request) -> Response:
        return await _answer(answerer, request, None)

    return [
        Route("/stores", stores),
        Route("/stores/{store}", store),
        Route("/stores/{store}/entries", entries),
        Route("/stores/{store}/keys/{key:path}", of_key),
    ]


async def _answer(answerer: Answerer, request: Request, key: str | None) -> Response:
    alone = PART_HEADER in request.headers
    question = question_of(request.path_params["store"], key, request.query_params.multi_items())
    part = await _in_time(answerer.ask(msgspec.structs.replace(question, alone=alone)))
    if alone:
        return Response(encode_part(part), headers=FRESH, media_type=PART)
    age = _age(question, part)
    try:
        part = settled(question, part)
    except AbsentError as absent:
        absent.headers = age
        raise
    headers = {**FRESH, **age}
    if part.single:
        return Response(part.entries[0].shown, headers=headers, media_type=_JSON)
    cursor = cursor_of(part.entries[-1].place) if part.more else None
    if ARROW in request.headers.get("accept", ""):
        table = await run_in_threadpool(arrow_stream, [entry.shown for entry in part.entries])
        headers |= {"Pystreams-Cursor": cursor} if cursor else {}
        return Response(table, headers=headers, media_type=ARROW)
    content = msgspec.json.encode(_Entries([msgspec.Raw(entry.shown) for entry in part.entries], cursor))
    return Response(content, headers=headers, media_type=_JSON)


def _age(question: Question, part: Part) -> dict[str, str]:
    """The headers that say how old an answer is: the input that it includes, and how far behind a standby was."""
    headers: dict[str, str] = {"Pystreams-Freshness": question.freshness}
    position = msgspec.json.encode(part.position).decode()
    if part.position and len(position) <= _POSITION_BYTES_MAX:
        headers["Pystreams-Position"] = position
    if part.lag is not None:
        headers["Pystreams-Standby-Lag"] = "unknown" if part.lag < 0 else str(part.lag)
    return headers


async def _in_time(answer: Awaitable[T]) -> T:
    """Raises ``TooSlowError`` for an answer that takes too long."""
    try:
        async with asyncio.timeout(QUERY_S):
            return await answer
    except TimeoutError:
        raise TooSlowError(
            f"the stores have not answered within {QUERY_S:g} s",
            why="threads of the application are busy, or wait for something",
            hint="ask again later; pystreams status shows what the application does",
        ) from None


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), headers=FRESH, media_type=_JSON)

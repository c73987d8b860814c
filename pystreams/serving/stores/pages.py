"""``/stores``: the stores of the application, and their entries by key and by range.

/stores                           all stores: kind, types, partitions
/stores/NAME                      one of them
/stores/NAME/keys/KEY             the value of a key; its windows, sessions or versions
/stores/NAME/entries?from=&to=    entries in the order of their keys, page by page

Answers are JSON, pages of entries on request Arrow's stream format.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pystreams.serving.query_errors import unknown_store
from pystreams.serving.refusals import FRESH
from pystreams.serving.stores.arrow import ARROW
from pystreams.serving.stores.asking import Answerer, in_time
from pystreams.serving.stores.peers import PART_HEADER
from pystreams.serving.stores.questions import only_of, question_of
from pystreams.serving.stores.replies import JSON, reply

PATHS: Final = ("/stores",)


def store_routes(answerer: Answerer) -> list[Route]:
    """The routes below ``/stores``."""

    async def stores(_request: Request) -> Response:
        return _json({"stores": await in_time(answerer.stores())})

    async def store(request: Request) -> Response:
        name = request.path_params["store"]
        infos = {info.name: info for info in await in_time(answerer.stores())}
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
    question = question_of(request.path_params["store"], key, request.query_params.multi_items())
    asked_for = request.headers.get(PART_HEADER, "")
    question = msgspec.structs.replace(question, alone=bool(asked_for), only=only_of(asked_for))
    part = await in_time(answerer.ask(question))
    accept = request.headers.get("accept", "")
    if ARROW in accept:
        return await run_in_threadpool(reply, question, part, accept)
    return reply(question, part, accept)


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), headers=FRESH, media_type=JSON)

"""The most frequent request, for a key. It does not use the routes of other pages, and is often answered at once."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pystreams.serving.head import Head
from pystreams.serving.query_errors import QueryError, as_query_error
from pystreams.serving.refusals import answer_to
from pystreams.serving.stores.arrow import ARROW
from pystreams.serving.stores.asking import Answerer, in_time
from pystreams.serving.stores.questions import Question, only_of, question_of
from pystreams.serving.stores.replies import reply

log = logging.getLogger(__name__)

#: The path of a key. As in routes, a path with a line break does not match.
_PATH: Final = re.compile(r"/stores/([^/]+)/keys/(.*)")

#: The number of query strings that are cached with their questions.
_PARAMETERS_REMEMBERED_MAX: Final = 256


class KeyPage:
    """Answers requests for keys as JSON, and leaves all others to ``others``."""

    def __init__(self, answerer: Answerer, others: ASGIApp) -> None:
        self._answerer = answerer
        self._others = others

    def at_once(self, scope: Scope, head: Head) -> Response | None:
        """The answer to a request if it need not wait, such as that for a key as of the last commit."""
        try:
            question = _question(scope, head)
            part = None if question is None else self._answerer.ask_at_once(question)
            return None if question is None or part is None else reply(question, part, head.accept)
        except QueryError as error:
            return answer_to(error)
        except Exception:
            # A task answers the request instead. If that fails, too, it logs the error and reports it to the client.
            log.debug("a key could not be read at once", exc_info=True)
            return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._answer(scope) if scope["type"] == "http" else None
        await (answer or self._others)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        """None: the request is not for a key."""
        try:
            head = Head(scope)
            question = _question(scope, head)
            if question is None:
                return None
            return reply(question, await in_time(self._answerer.ask(question)), head.accept)
        except QueryError as error:
            return answer_to(error)
        except Exception as error:
            log.exception("a query failed")
            return answer_to(as_query_error(error))


def _question(scope: Scope, head: Head) -> Question | None:
    """None: it is another request. Raises ``BadQueryError``."""
    if scope["method"] != "GET" or ARROW in head.accept:
        return None
    found = _PATH.fullmatch(head.path)
    if found is None:
        return None
    question = _without_key(scope["query_string"])
    of_part = {"alone": True, "only": only_of(head.part)} if head.part else {}
    return msgspec.structs.replace(question, store=found[1], key=found[2], **of_part)


@lru_cache(_PARAMETERS_REMEMBERED_MAX)
def _without_key(query_string: bytes) -> Question:
    """The question for a key, without store and key. Raises ``BadQueryError``."""
    return question_of("", "", parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))

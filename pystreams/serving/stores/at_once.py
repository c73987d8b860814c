"""The frequent request, for a key as of the last commit, is answered without waiting for anybody."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response
from starlette.types import Scope

from pystreams.serving.head import Head
from pystreams.serving.query_errors import QueryError
from pystreams.serving.refusals import answer_to
from pystreams.serving.stores.arrow import ARROW
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.stores.questions import Question, question_of
from pystreams.serving.stores.replies import reply

log = logging.getLogger(__name__)

#: The path of a key. As in routes, a line break in it leads nowhere.
_PATH: Final = re.compile(r"/stores/([^/]+)/keys/(.*)")

#: So many sets of parameters are remembered, each as it is read.
_PARAMETERS_REMEMBERED_MAX: Final = 256


class KeysAtOnce:
    """Answers requests for keys that an ``Answerer`` can answer at once."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    def answer(self, scope: Scope, head: Head) -> Response | None:
        """None: the request is another one, or must wait for somebody."""
        found = _PATH.fullmatch(head.path)
        if found is None or scope["method"] != "GET" or ARROW in head.accept:
            return None
        try:
            asked = _asked(scope["query_string"])
            if asked.freshness == "latest":
                return None
            question = msgspec.structs.replace(asked, store=found[1], key=found[2], alone=bool(head.part))
            part = self._answerer.ask_at_once(question)
            return None if part is None else reply(question, part, head.accept)
        except QueryError as error:
            return answer_to(error)
        except Exception:
            # It is asked for again as all others are, whose failures are told to the log and to the client.
            log.debug("a key could not be read at once", exc_info=True)
            return None


@lru_cache(_PARAMETERS_REMEMBERED_MAX)
def _asked(query_string: bytes) -> Question:
    """The question for a key, without store and key. Raises ``BadQueryError``."""
    return question_of("", "", parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))

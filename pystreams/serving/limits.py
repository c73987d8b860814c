"""The limits of requests: they have no body, because all of them only read; the length of their paths and the number of
requests at the same time are limited."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from pystreams.serving.head import Head
from pystreams.serving.refusals import RETRY_AFTER, refusal

#: The largest number of requests at the same time; further ones get 503. Probes do not count, because they show why the
#: others wait.
REQUESTS_MAX: Final = 256

#: The largest path, with its parameters.
TARGET_BYTES_MAX: Final = 16_384

_NO_BODY: Final = ("", "0")


def size_refusal(scope: Scope, head: Head) -> Response | None:
    """The answer to a request that is too large. It comes before the body is read, and ends the connection."""
    if head.content_length not in _NO_BODY or head.transfer_encoding:
        hint = "send a GET request, with its parameters in the URL"
        return refusal(413, "body", "a request has no body here", hint=hint, Connection="close")
    # The server counts only what it has to wait for: a head that arrives at once may be larger than its limit.
    if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > TARGET_BYTES_MAX:
        why = f"it has more than {TARGET_BYTES_MAX:,} bytes"
        return refusal(414, "too-long", "the path is too long", why=why, Connection="close")
    return None


def one_too_many(at_work: int) -> Response | None:
    """The refusal of a request if too many others are in progress; None: the request may proceed."""
    if at_work < REQUESTS_MAX:
        return None
    why = f"{REQUESTS_MAX} requests are at work"
    hint = "ask again in a moment"
    return refusal(503, "busy", "the server has too much to do", why=why, hint=hint, **RETRY_AFTER)

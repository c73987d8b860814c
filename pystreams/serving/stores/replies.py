"""The reply with a part that answers a client's question: JSON, a table of Arrow, or the part itself."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from pystreams.serving.query_errors import AbsentError
from pystreams.serving.refusals import FRESH
from pystreams.serving.stores.arrow import ARROW, arrow_stream
from pystreams.serving.stores.parts import StorePart, settled
from pystreams.serving.stores.peers import PART, encode_part
from pystreams.serving.stores.questions import Offsets, Question, cursor_of

JSON: Final = "application/json"

#: A larger position is in the body: proxies refuse answers with headers of more than 8 KB, or of 4 KB.
_POSITION_BYTES_MAX: Final = 2_048


class _Entries(msgspec.Struct):
    """A page. A request for the next page has this ``cursor``; null: there is no next page. ``position`` is set only if
    it is too large for a header."""

    entries: list[msgspec.Raw]
    cursor: str | None
    position: Offsets | msgspec.UnsetType = msgspec.UNSET


def reply(question: Question, part: StorePart, accept: str) -> Response:
    """The reply. ``accept`` is the request's header. It takes long if it is an Arrow table. Raises ``QueryError``."""
    if question.alone:
        return Response(encode_part(part), headers=FRESH, media_type=PART)
    age, is_large = _age(question, part)
    try:
        part = settled(question, part)
    except AbsentError as absent:
        absent.headers = age
        if is_large:
            absent.fields = {**absent.fields, "position": part.position}
        raise
    headers, position = {**FRESH, **age}, part.position if is_large else None
    if part.single:
        return Response(part.entries[0].shown, headers=headers, media_type=JSON)
    cursor = cursor_of(part.entries[-1].place) if part.more else None
    if ARROW in accept:
        table = arrow_stream([entry.shown for entry in part.entries], position)
        headers |= {"Pystreams-Cursor": cursor} if cursor else {}
        return Response(table, headers=headers, media_type=ARROW)
    entries = [msgspec.Raw(entry.shown) for entry in part.entries]
    content = _encode(_Entries(entries, cursor, position or msgspec.UNSET))
    return Response(content, headers=headers, media_type=JSON)


def _age(question: Question, part: StorePart) -> tuple[dict[str, str], bool]:
    """The headers that describe the age of an answer: the input that it includes, and the lag of a standby. Then
    whether the position is too large for a header."""
    headers: dict[str, str] = {"Pystreams-Freshness": question.freshness}
    position = _encode(part.position).decode()
    is_large = len(position) > _POSITION_BYTES_MAX
    if part.position and not is_large:
        headers["Pystreams-Position"] = position
    if part.lag is not None:
        headers["Pystreams-Standby-Lag"] = "unknown" if part.lag < 0 else str(part.lag)
    return headers, is_large


_encode: Final = msgspec.json.Encoder().encode

"""A query of a store, as a client sends it, and as it is passed on to the processes that can answer it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias

import msgspec

from pystreams.errors import ConfigError
from pystreams.nearest import not_among
from pystreams.runtime.queries.answers import Freshness
from pystreams.serving.query_errors import BadQueryError
from pystreams.stream_time import TIME_MAX
from pystreams.times import read_time

LIMIT_DEFAULT: Final = 100

#: The number of entries that a page has at most.
LIMIT_MAX: Final = 10_000

#: The parameters of a query for one key, and of one for a range of keys.
_DEMANDS: Final = ("freshness", "standbys", "position")
KEY_PARAMETERS: Final = ("from_time", "to_time", "as_of", "limit", "cursor", *_DEMANDS)
RANGE_PARAMETERS: Final = ("from", "to", "from_time", "to_time", "limit", "cursor", *_DEMANDS)

#: An offset for each partition of some topics, as ``{"topic": {"0": 5}}`` in JSON.
Offsets: TypeAlias = dict[str, dict[int, int]]


#: The beginning of a header that names partitions: the bits of a number in base 16.
_ONLY: Final = "only="

_Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=TIME_MAX)]
_decode_position = msgspec.json.Decoder(dict[str, dict[_Whole, _Whole]]).decode


class EntryPlace(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The place of an entry among all entries of a store, which are in the order of their keys' bytes, then of their
    times. ``start`` and ``end`` are those of a window or session; for a version, ``start`` is its beginning."""

    key: bytes
    start: int = 0
    end: int = 0


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """``key`` is the text of a key, or None for a range of keys from ``key_from`` to ``key_to``, both included; None is
    an open end. Times are ms since 1970, both included. ``after`` is the place of the last entry of the previous page.
    ``freshness``, ``standbys`` and ``position`` are as for ``Streams.store``, which calls the last one ``at_least``.
    ``alone``: do not ask other instances of the application, because the question comes from one of them. ``only``:
    read only these partitions, because others have answered for the rest (empty: read all that are there)."""

    store: str
    key: str | None = None
    key_from: str | None = None
    key_to: str | None = None
    time_from: int | None = None
    time_to: int | None = None
    as_of: int | None = None
    limit: int = LIMIT_DEFAULT
    after: EntryPlace | None = None
    freshness: Freshness = "latest"
    standbys: bool = False
    position: Offsets = {}
    alone: bool = False
    only: tuple[int, ...] = ()


def question_of(store: str, key: str | None, parameters: Iterable[tuple[str, str]]) -> Question:
    """The question in a request, whose parameters may come in any order. Raises ``BadQueryError``."""
    known = RANGE_PARAMETERS if key is None else KEY_PARAMETERS
    given: dict[str, str] = {}
    for name, text in parameters:
        if name not in known:
            raise BadQueryError(
                f"there is no parameter {name[:80]!r}", **not_among(name[:80], known, "it may have")
            )
        if name in given:
            raise BadQueryError(f"parameter {name} is given twice", hint="give it once")
        given[name] = text
    return Question(
        store,
        key,
        key_from=given.get("from"),
        key_to=given.get("to"),
        time_from=_time(given, "from_time"),
        time_to=_time(given, "to_time"),
        as_of=_time(given, "as_of"),
        limit=_limit(given.get("limit")),
        after=place_of(given["cursor"]) if "cursor" in given else None,
        freshness=_freshness(given),
        standbys=_standbys(given),
        position=_position(given.get("position")),
    )


def parameters_of(question: Question) -> dict[str, str]:
    """The parameters from which ``question_of`` makes this question."""
    texts = {
        "from": question.key_from,
        "to": question.key_to,
        "from_time": _text(question.time_from),
        "to_time": _text(question.time_to),
        "as_of": _text(question.as_of),
        "limit": str(question.limit),
        "cursor": None if question.after is None else cursor_of(question.after),
        "freshness": question.freshness,
        "standbys": "true" if question.standbys else None,
        "position": msgspec.json.encode(question.position).decode() if question.position else None,
    }
    return {name: text for name, text in texts.items() if text is not None}


def part_of(question: Question) -> str:
    """The partitions that a question is about, as the value of a header. It is short also for thousands of them."""
    return f"{_ONLY}{sum(1 << partition for partition in set(question.only)):x}" if question.only else "1"


def only_of(part: str) -> tuple[int, ...]:
    """The partitions in a text that ``part_of`` has made; empty for any other text."""
    try:
        bits = f"{int(part.removeprefix(_ONLY), 16):b}" if part.startswith(_ONLY) else ""
    except ValueError:
        return ()
    return tuple(partition for partition, bit in enumerate(reversed(bits)) if bit == "1")


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def cursor_of(place: EntryPlace) -> str:
    """A place as text that may stand in a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def place_of(cursor: str) -> EntryPlace:
    """The place that ``cursor_of`` has written. Raises ``BadQueryError`` for any other text."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.msgpack.decode(packed, type=EntryPlace)
    except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
        raise BadQueryError(
            "the cursor is not one of a page", hint="give the cursor of the page before as it is"
        ) from None


def _freshness(given: Mapping[str, str]) -> Freshness:
    match given.get("freshness", "committed" if _standbys(given) else "latest"):
        case "latest":
            if _standbys(given):
                raise BadQueryError(
                    "standbys cannot be asked for the latest state",
                    why="they follow what the task has written to its changelogs",
                    hint="leave freshness out, or ask with freshness=committed",
                )
            return "latest"
        case "committed":
            return "committed"
        case other:
            raise BadQueryError(
                f"freshness={other[:80]!r} is not a freshness of answers", hint="write latest or committed"
            )


def _standbys(given: Mapping[str, str]) -> bool:
    text = given.get("standbys", "false")
    if text not in ("true", "false"):
        raise BadQueryError(f"standbys={text[:80]!r} is neither true nor false")
    return text == "true"


def _position(text: str | None) -> Offsets:
    if text is None:
        return {}
    try:
        return _decode_position(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadQueryError(
            "the position is not one", why=str(error), hint='write {"TOPIC": {"PARTITION": OFFSET}} as JSON'
        ) from None


def _time(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        time_ms = read_time(text)
    except (ConfigError, ValueError, OverflowError):
        time_ms = -1
    if not 0 <= time_ms <= TIME_MAX:
        raise BadQueryError(
            f"{name}={text[:80]!r} is not a time",
            hint="write milliseconds since 1970, 2013-01-01, or 2013-01-01T10:00:00Z",
        )
    return time_ms


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT_DEFAULT
    # The number of digits is checked first, because a very long number would take long to convert.
    if text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise BadQueryError(
        f"limit={text[:80]!r} is not a number of entries",
        why=f"a page has 1 to {LIMIT_MAX:,} entries",
        hint="ask for the next page with the cursor of the one before",
    )

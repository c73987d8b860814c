"""The errors of queries of a store.

QueryError
├── BadQueryError         the request is wrong
├── UnknownStoreError     the application has no store of that name
├── AbsentError           the store has no entry of that key
├── NotAcceptableError    the answer does not exist in that form
├── UnreachableError      a part of the store cannot be read now; ask again
├── TooSlowError          the answer would take too long
└── FailedError           the content of the store cannot be shown; another request will fail, too

Each has the status with which HTTP answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pystreams.errors import SerializationError, StreamsError
from pystreams.nearest import not_among
from pystreams.times import show_time


class QueryError(StreamsError):
    """Root of these errors. ``status`` is HTTP's, ``code`` names the kind of error for programs."""

    status: ClassVar[int]
    code: ClassVar[str]
    #: Further headers of the answer, and further fields of its JSON.
    headers: Mapping[str, str] = MappingProxyType({})
    fields: Mapping[str, Any] = MappingProxyType({})


class BadQueryError(QueryError):
    """The request is wrong, or is not possible for a store of that kind."""

    status, code = 400, "bad-query"


class UnknownStoreError(QueryError):
    """The application has no store of that name that can be read."""

    status, code = 404, "unknown-store"


class AbsentError(QueryError):
    """The store does not have the key: all partitions that could have it were read."""

    status, code = 404, "absent"


class NotAcceptableError(QueryError):
    """The answer does not exist in the requested form."""

    status, code = 406, "not-acceptable"


class UnreachableError(QueryError):
    """A part of the store that the answer needs cannot be read now, for example during a rebalance."""

    action = "retry"
    status, code = 503, "unreachable"


class TooSlowError(QueryError):
    """The answer was not complete within the time limit of queries."""

    action = "retry"
    status, code = 503, "too-slow"


class FailedError(QueryError):
    """A read of the store has failed, and would fail again, for example because a serde cannot read an entry."""

    status, code = 500, "failed"


def as_query_error(error: Exception) -> QueryError:
    """The error for an exception during a query. If the application is ending, or the like, a later request may
    succeed; if a serde cannot read an entry, it will not."""
    if isinstance(error, QueryError):
        return error
    if isinstance(error, StreamsError):
        kind = FailedError if isinstance(error, SerializationError) else UnreachableError
        return kind(error.what, where=error.place, why=error.why, hint=error.hint)
    return FailedError(
        "the query failed",
        why=f"{type(error).__name__}: {str(error)[:200]}",
        hint="the log of the application has the whole error; check the serdes of the store",
    )


def unknown_store(name: str, known: Iterable[str]) -> UnknownStoreError:
    """The error for a name that none of the ``known`` stores has."""
    shown = name[:200]
    return UnknownStoreError(f"there is no store {shown!r} to read", **not_among(shown, known, "there are"))


def nothing_under(key: str, store: str, read: str, kept_from_ms: int | None) -> AbsentError:
    """The error for a key without entries. ``read``: what was read. ``kept_from_ms``: windows that began, or sessions
    that ended, before this time have expired (0 or None: none are known to have expired)."""
    expired = f"; nothing from before {show_time(kept_from_ms)} is kept any longer" if kept_from_ms else ""
    error = AbsentError(f"store {store} has nothing under the key {key[:200]!r}", why=f"{read}{expired}")
    if kept_from_ms:
        error.fields = {"kept_from_ms": kept_from_ms}
    return error


def query_error(
    code: str, what: str, *, where: str, why: str, hint: str, fields: Mapping[str, Any] | None = None
) -> QueryError:
    """The error with this code that another process has raised."""
    kinds = {kind.code: kind for kind in QueryError.__subclasses__()}
    error = kinds.get(code, UnreachableError)(what, where=where, why=why, hint=hint)
    error.fields = fields or {}
    return error

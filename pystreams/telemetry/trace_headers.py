"""The context of a trace in the headers of a record: ``traceparent`` and ``tracestate``.

Source: https://www.w3.org/TR/trace-context/.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opentelemetry.trace import Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pystreams.record import NO_HEADERS, Headers

_PARENT: Final = "traceparent"
_STATE: Final = "tracestate"
_NAMES: Final = frozenset({_PARENT, _STATE})

_W3C: Final = TraceContextTextMapPropagator()

#: The place of the last digit of the flags in ``traceparent``, and the digits that mean that the trace is sampled.
_FLAGS_END: Final = 54
_SAMPLED: Final = frozenset(b"13579bdfBDF")


def sampled_contexts(records: Iterable[Headers], limit: int) -> list[SpanContext]:
    """The first ``limit`` different contexts of sampled spans, in the order of the records."""
    found: dict[bytes, SpanContext] = {}
    for headers in records:
        for name, value in headers:
            if name != _PARENT or value is None or value in found or not _is_sampled(value):
                continue
            context = _context(headers)
            if not context.is_valid:
                continue
            found[value] = context
            if len(found) == limit:
                return list(found.values())
    return list(found.values())


def headers_of(span: Span) -> Headers:
    """The headers with which a record refers to the span that it comes from; none if the span is not sampled."""
    if not span.get_span_context().trace_flags.sampled:
        return NO_HEADERS
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span))
    return tuple((name, text.encode()) for name, text in carrier.items())


def carrying(headers: Headers, own: Headers) -> Headers:
    """The headers of a record with ``own`` context in place of that of its input."""
    return (*(header for header in headers if header[0] not in _NAMES), *own) if headers else own


def _is_sampled(value: bytes) -> bool:
    """Whether the trace is sampled, from the flags alone: a cheap check, because most traces are not sampled."""
    return len(value) > _FLAGS_END and value[_FLAGS_END] in _SAMPLED


def _context(headers: Headers) -> SpanContext:
    carrier = {
        name: value.decode("ascii", "replace")
        for name, value in headers
        if name in _NAMES and value is not None
    }
    return get_current_span(_W3C.extract(carrier)).get_span_context()

"""A type of Arrow with the function that makes values fit it, and the types that all formats share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, pc

Fit: TypeAlias = Callable[[Any], Any]

#: Arrow's type of a time that SQL can work with.
MOMENT: Final = pa.timestamp("us", "UTC")
#: A time of day and date without a time zone.
LOCAL_TIME: Final = pa.timestamp("us")
#: Spark's type for decimals of which nothing else is known.
DECIMAL: Final = pa.decimal128(38, 18)
#: The end of the year 9999.
_MOMENT_MS_MAX: Final = 253_402_300_799_999


class Typed(NamedTuple):
    """``fit`` makes of a value, which is not None, one that Arrow puts into ``type``; None: it takes values as they
    are."""

    type: Arrow
    fit: Fit | None = None


def list_of(element: Typed) -> Typed:
    """A list, or anything else that has elements in an order."""
    fit = or_none(element.fit)
    return Typed(pa.list_(element.type), list if fit is None else lambda values: [fit(one) for one in values])


def mapping_of(key: Typed, value: Typed) -> Typed:
    """A mapping, as Arrow takes it: pairs."""
    fit_key, fit_value = key.fit or _same, or_none(value.fit) or _same
    return Typed(
        pa.map_(key.type, value.type),
        lambda entries: [(fit_key(key), fit_value(entries[key])) for key in entries],
    )


def struct_of(names: Sequence[str], parts: Sequence[Typed], values_of: Fit) -> Typed:
    """A struct; ``values_of`` gives an object's values in the order of ``names``."""
    fits = [or_none(part.fit) or _same for part in parts]

    def fit(value: Any) -> dict[str, Any]:
        values = values_of(value)
        return {name: to(one) for name, to, one in zip(names, fits, values, strict=True)}

    return Typed(pa.struct([(name, part.type) for name, part in zip(names, parts, strict=True)]), fit)


def or_none(fit: Fit | None) -> Fit | None:
    """The function for parts of values, which may be missing."""
    return None if fit is None else lambda value: None if value is None else fit(value)


def json_text(value: Any) -> str:
    """A value as JSON; sets and mappings are sorted. Raises ``TypeError`` for one that JSON does not have."""
    plain = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_plain)
    return msgspec.json.encode(plain).decode()


def moments(times_ms: Arrow) -> Arrow:
    """Milliseconds as moments, which SQL can work with; null for those past all years that SQL knows."""
    known = pc.less_equal(pc.abs(times_ms), _MOMENT_MS_MAX)
    return pc.multiply(pc.if_else(known, times_ms, None), 1000).cast(MOMENT)


def _same(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """A value that msgspec does not know: of pydantic or Faust, whose modules are there if it is."""
    if hasattr(value, "to_representation"):
        return value.to_representation()
    pydantic = sys.modules.get("pydantic_core")
    if pydantic is None:
        raise TypeError(f"JSON has no {type(value).__name__}")
    return pydantic.to_jsonable_python(value)


#: The type of values for which a column has no type.
TEXT: Final = Typed(pa.string(), json_text)
#: UUIDs, times of day: as people write them.
UUID_TEXT: Final = Typed(pa.string(), str)
TIME_TEXT: Final = Typed(pa.string(), lambda time: time.isoformat())

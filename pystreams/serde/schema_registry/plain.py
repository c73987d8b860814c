"""Converts values of a program's types to dicts, lists and scalars, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from pystreams.serde.shapes import Shape

Convert: TypeAlias = Callable[[Any], Any]

#: Types that codecs such as fastavro's take unconverted.
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


def plain_codec(type_: Any) -> tuple[Convert | None, Convert | None]:
    """Two functions: one converts a value to its plain form, one converts back; None where values are plain already.

    Raises ``TopologyError`` for a type without such a form.
    """
    if type_ in (dict, list, Any, object):
        return None, None
    shape = Shape.of(type_)
    if shape.pydantic:
        adapter = sys.modules["pydantic"].TypeAdapter(type_)
        return adapter.dump_python, adapter.validate_python

    def to_plain(value: Any) -> Any:
        return msgspec.to_builtins(
            value, builtin_types=_KEPT, order="deterministic" if shape.holds_sets else None
        )

    def of_plain(plain: Any) -> Any:
        return msgspec.convert(plain, type_, builtin_types=_KEPT)

    return to_plain, of_plain

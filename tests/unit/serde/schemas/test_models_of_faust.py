"""Versions of Faust's models: by the fields that Faust writes."""

from __future__ import annotations

from typing import Any

import faust
import pytest

from pystreams.errors import SerializationError
from pystreams.serde import FaustSerde
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Effect, Finding
from pystreams.serde.schemas.comparison import compare


class Line(faust.Record):
    sku: str
    below: Line | None = None


class Order(faust.Record):
    cents: int = 0
    line: Line | None = None


class Sale(faust.Record):
    cents: int = 0
    line: Line | None = None


class InEuros(faust.Record):
    euros: int = 0
    line: Line | None = None


class WithCity(faust.Record):
    cents: int = 0
    line: Line | None = None
    city: str = "Ulm"


class NeedsCity(faust.Record):
    city: str
    cents: int = 0
    line: Line | None = None


class Packed(faust.Record, serializer="json|binary"):
    cents: int = 0
    line: Line | None = None


def findings(was: Any, now: Any) -> list[Finding]:
    return compare(schema_of(FaustSerde(was)), schema_of(FaustSerde(now)))


@pytest.mark.parametrize(
    "now, path, effect",
    [
        (InEuros, "cents", Effect.LOSES),
        (WithCity, "city", Effect.READS_ON),
        (NeedsCity, "city", Effect.FAILS),
        (Packed, "", Effect.FAILS),
    ],
)
def test_what_is_said_is_what_faust_does(now: Any, path: str, effect: Effect) -> None:
    found = findings(Order, now)
    assert (path, effect) in {(finding.path, finding.effect) for finding in found}
    data = FaustSerde(Order).serializer("topic")(Order(cents=5, line=Line("a")))
    read = FaustSerde(now).deserializer("topic")
    if effect is Effect.FAILS:
        with pytest.raises(SerializationError):
            read(data)
        return
    value = read(data)
    assert value.asdict().get("cents") == (None if effect is Effect.LOSES else 5)
    assert value.line.sku == "a"


def test_names_of_models_do_not_count() -> None:
    assert findings(Order, Sale) == []


def test_any_model_may_stand_where_the_record_names_it() -> None:
    assert [finding.effect for finding in findings(Order, faust.Record)] == [Effect.READS_ON]

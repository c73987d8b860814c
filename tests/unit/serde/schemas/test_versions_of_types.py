"""Two versions of a type: what is said about each change, place by place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from pystreams.serde import JsonSerde, ListSerde, MsgpackSerde, Serde, TimeWindowedSerde, serde_for
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Effect
from pystreams.serde.schemas.comparison import changes_keys, compare

READS, LOSES, FAILS = Effect.READS_ON, Effect.LOSES, Effect.FAILS


def struct(*fields: Any, **options: Any) -> Any:
    return msgspec.defstruct("Row", fields, **options)


class Node(msgspec.Struct):
    sku: str
    below: list[Node] = []


class PricedNode(msgspec.Struct):
    sku: str
    below: list[PricedNode] = []
    price: int = 0


class Cents(TypedDict):
    cents: int


class CentsAndMore(TypedDict):
    cents: int
    city: NotRequired[str]


class NeedsMore(TypedDict):
    cents: int
    city: str


class Point(NamedTuple):
    x: int
    y: int


class Point3(NamedTuple):
    x: int
    y: int
    z: int = 0


@dataclass
class Order:
    cents: int = 0


@dataclass
class Sale:
    cents: int = 0


@dataclass
class InEuros:
    euros: int = 0


@dataclass
class Basket:
    lines: list[Order] = field(default_factory=list)


@dataclass
class BasketInEuros:
    lines: list[InEuros] = field(default_factory=list)


class Bought(msgspec.Struct, tag="bought"):
    cents: int


class Sold(msgspec.Struct, tag="sold"):
    cents: int


class Moved(msgspec.Struct, tag="moved"):
    where: str


CENTS = struct(("cents", int, 0))


@pytest.mark.parametrize(
    "was, now, expected",
    [
        (Order, Sale, []),
        (int | None, None | int, []),
        (
            Order,
            InEuros,
            [
                ("cents", LOSES, "is gone (perhaps it is now euros)"),
                ("euros", READS, "is new, with the default 0"),
            ],
        ),
        (
            Basket,
            BasketInEuros,
            [
                ("lines[].cents", LOSES, "is gone (perhaps it is now euros)"),
                ("lines[].euros", READS, "is new, with the default 0"),
            ],
        ),
        (Node, PricedNode, [("price", READS, "is new, with the default 0")]),
        (PricedNode, Node, [("price", LOSES, "is gone")]),
        (CENTS, struct(("cents", int)), [("cents", READS, "is required now (it had the default 0)")]),
        (struct(("cents", int)), CENTS, [("cents", READS, "is optional now, with the default 0")]),
        (
            CENTS,
            struct(("cents", int, 1)),
            [("cents", READS, "has the default 1, no longer the default 0: so do values without the field")],
        ),
        (
            struct(("cents", int, 0), omit_defaults=True),
            struct(("cents", int, 1), omit_defaults=True),
            [("cents", LOSES, "was left out if it had the default 0, and is read with the default 1")],
        ),
        (
            struct(("cents", int, 0), omit_defaults=True),
            struct(("cents", int)),
            [("cents", FAILS, "was optional when it was written, and is required now")],
        ),
        (CENTS, struct(("cents", str, "")), [("cents", FAILS, "was int, is now str")]),
        (
            CENTS,
            struct(("cents", int, 0), ("city", str), kw_only=True),
            [("city", FAILS, "is new, and is required")],
        ),
        (
            struct(("cents", int), ("city", str)),
            struct(("cents", int), forbid_unknown_fields=True),
            [("city", FAILS, "is gone, and unknown fields are refused")],
        ),
        (
            struct(("cents", int, msgspec.field(name="c"))),
            struct(("cents", int, msgspec.field(name="amount", default=0))),
            [("c", LOSES, "is gone (perhaps it is now amount)")],
        ),
        (
            struct(("total_sum", int)),
            struct(("total_sum", int, 0), rename="camel"),
            [("total_sum", LOSES, "is gone (perhaps it is now totalSum)")],
        ),
        (
            struct(("a", int), ("b", int), array_like=True),
            struct(("b", int), ("a", int), array_like=True),
            [
                ("a", LOSES, "is read as b, which has its position"),
                ("b", LOSES, "is read as a, which has its position"),
            ],
        ),
        (
            struct(("a", int), array_like=True),
            struct(("b", int), array_like=True),
            [("a", READS, "is read as b, which has its position")],
        ),
        (
            struct(("a", int)),
            struct(("a", int), array_like=True),
            [("", FAILS, "was written as an object with names, is now an array of its fields")],
        ),
        (
            struct(("a", int), ("b", int)),
            struct(("b", int), ("a", int)),
            [("", READS, "has its fields in another order: a, b, now b, a")],
        ),
        (Cents, CentsAndMore, [("city", READS, "is new, with no value by default")]),
        (
            CentsAndMore,
            NeedsMore,
            [("city", FAILS, "was optional when it was written, and is required now")],
        ),
        (Point, Point3, [("z", READS, "is new, with the default 0")]),
        (Point3, Point, [("z", FAILS, "is gone, and longer arrays are refused")]),
        (Bought | Sold, Bought | Sold | Moved, [("", READS, "may be object, too")]),
        (
            Bought | Sold | Moved,
            Bought | Sold,
            [("", FAILS, "may be object, which object or object does not take")],
        ),
        (Bought, Bought | Sold, [("", READS, "was object, is now object or object")]),
        (struct(("cents", int)), Bought | Sold, [("", FAILS, "was object, is now object or object")]),
        (Bought, Sold, [("", FAILS, 'was written with type="bought", is now type="sold"')]),
        (int, int | None, [("", READS, "was int, is now int or none")]),
        (int | None, int, [("", FAILS, "may be none, which int does not take")]),
        (Literal["a", "b"], Literal["a", "b", "c"], [("", READS, 'may be "c", too')]),
        (Literal["a", "b"], Literal["a"], [("", FAILS, 'could be "b", which is not allowed any more')]),
        (list[int], set[int], [("", LOSES, "is now a set: order and duplicates are lost")]),
        (dict[int, str], dict[str, str], []),
        (dict[str, Order], dict[str, InEuros], [("{}.cents", LOSES, "is gone (perhaps it is now euros)")]),
        (Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=-1)], []),
        (
            Annotated[int, msgspec.Meta(ge=0)],
            Annotated[int, msgspec.Meta(ge=1)],
            [("", FAILS, "must have ge=1 now")],
        ),
        (dict, Order, [("cents", FAILS, "was any value, is now int")]),
        (dict[str, int], Order, [("", LOSES, "was a mapping, of which only the fields are read now")]),
    ],
)
def test_each_change_is_reported_with_its_place(was: Any, now: Any, expected: list[Any]) -> None:
    found = compare(schema_of(JsonSerde(was)), schema_of(JsonSerde(now)))
    told = [(finding.path, finding.effect, finding.why) for finding in found]
    assert told[: len(expected)] == expected
    if not expected:
        assert told == [] or all(finding.effect is READS for finding in found)


class Model(pydantic.BaseModel):
    cents: int = 0
    city: str = ""


class ByAnotherName(pydantic.BaseModel):
    euros: int = pydantic.Field(0, validation_alias=pydantic.AliasChoices("euros", "cents"))
    city: str = ""


class Closed(pydantic.BaseModel, extra="forbid"):
    cents: int = 0


class Open(pydantic.BaseModel, extra="allow"):
    cents: int = 0


class Positive(pydantic.BaseModel):
    cents: pydantic.PositiveInt = 1
    city: str = ""


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"


class Home(pydantic.BaseModel):
    pet: Cat


class HomeOfBoth(pydantic.BaseModel):
    pet: Cat | Dog = pydantic.Field(discriminator="kind")


@pytest.mark.parametrize(
    "was, now, place, effect",
    [
        (Model, ByAnotherName, "euros", READS),
        (ByAnotherName, Model, "euros", LOSES),
        (Model, Closed, "city", FAILS),
        (Model, Open, "city", READS),
        (Model, Positive, "cents", FAILS),
        (Home, HomeOfBoth, "pet", READS),
        (HomeOfBoth, Home, "pet", FAILS),
    ],
)
@pytest.mark.parametrize("codec", [JsonSerde, MsgpackSerde])
def test_models_of_pydantic(codec: Any, was: Any, now: Any, place: str, effect: Effect) -> None:
    found = compare(schema_of(codec(was)), schema_of(codec(now)))
    assert (place, effect) in {(finding.path.partition(".")[0], finding.effect) for finding in found}
    assert max(finding.effect for finding in found) is effect


@pytest.mark.parametrize(
    "was, now",
    [
        (str, int),
        (int, float),
        (JsonSerde(int), int),
        (JsonSerde(Order), MsgpackSerde(Order)),
        (list, ListSerde(int)),
    ],
)
def test_other_bytes_cannot_be_read(was: Any, now: Any) -> None:
    found = compare(schema_of(serde_for(was)), schema_of(serde_for(now)))
    assert [finding.effect for finding in found] == [FAILS]


@pytest.mark.parametrize(
    "was, now, changed",
    [
        (Order, Sale, False),
        (Literal["a"], Literal["a", "b"], False),
        (Point, Point3, True),
        (Cents, CentsAndMore, False),
        (Order, struct(("cents", float, 0.0)), True),
        (struct(("a", int), ("b", int)), struct(("b", int), ("a", int)), True),
    ],
)
def test_keys_are_others_as_soon_as_their_bytes_are(was: Any, now: Any, changed: bool) -> None:
    for around in (JsonSerde, lambda kind: TimeWindowedSerde(JsonSerde(kind), 5)):
        found = compare(schema_of(around(was)), schema_of(around(now)))
        assert changes_keys(found) is changed


class Own(Serde[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def serializer(self, topic: str) -> Any:
        return lambda value: value.to_bytes(self.size, "big")

    def deserializer(self, topic: str) -> Any:
        return lambda data: int.from_bytes(data, "big")


class Packed(JsonSerde[Any]):
    def serializer(self, topic: str) -> Any:
        return lambda value: b"packed" + super(Packed, self).serializer(topic)(value)


class Told(Own):
    def bytes_schema(self) -> dict[str, Any]:
        return {"format": "number", "size": self.size}


def test_serdes_of_the_users_are_known_by_name_and_data() -> None:
    assert compare(schema_of(Own(4)), schema_of(Own(4))) == []
    for other in (Own(8), Told(4), Packed(Order)):
        (found,) = compare(schema_of(Own(4)), schema_of(other))
        assert found.effect is FAILS
    assert schema_of(Packed(Order)) == {
        "format": "serde",
        "name": f"{__name__}.Packed",
        "data": {"immutable": False, "type": f"{__name__}.Order"},
    }
    assert schema_of(Told(4)) == {"format": "number", "size": 4}

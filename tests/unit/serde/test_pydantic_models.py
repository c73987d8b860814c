"""pydantic reads, checks and writes its own models; pystreams never loads it by itself."""

from __future__ import annotations

import dataclasses
import datetime as dt
import subprocess
import sys
from typing import Any

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from pystreams.errors import SerializationError, TopologyError
from pystreams.serde import JsonSerde, MsgpackSerde, serde_for


class Address(pydantic.BaseModel):
    city: str = pydantic.Field(min_length=1)


class Customer(pydantic.BaseModel):
    id: int
    since: dt.date
    address: Address
    friends: list[Customer] = []


@pydantic.dataclasses.dataclass
class Checked:
    n: pydantic.PositiveInt


@dataclasses.dataclass
class Order:
    customer: Customer
    lines: list[int]


CUSTOMER = Customer(id=1, since=dt.date(2013, 1, 2), address=Address(city="Ulm"))
VALUES: list[tuple[Any, Any]] = [
    (Customer, CUSTOMER),
    (list[Customer], [CUSTOMER]),
    (dict[str, Customer], {"a": CUSTOMER}),
    (Checked, Checked(n=1)),
    (Order, Order(CUSTOMER, [1, 2])),
    (Customer | None, CUSTOMER),
]


@pytest.mark.parametrize("codec", [JsonSerde, MsgpackSerde])
@pytest.mark.parametrize("type_,value", VALUES, ids=[str(type_) for type_, _ in VALUES])
def test_models_come_back_alone_and_inside_of_other_types(codec, type_, value):
    serde = codec(type_)
    data = serde.serializer("topic")(value)
    assert type(data) is bytes
    assert serde.deserializer("topic")(data) == value


def test_the_json_is_pydantics_own():
    assert serde_for(Customer).serializer("topic")(CUSTOMER) == CUSTOMER.model_dump_json().encode()


def test_what_the_model_forbids_is_an_error():
    data = b'{"id":1,"since":"2013-01-02","address":{"city":""}}'
    with pytest.raises(SerializationError, match=r"address\.city"):
        serde_for(Customer).deserializer("topic")(data)
    with pytest.raises(SerializationError, match="greater than 0"):
        serde_for(Checked).deserializer("topic")(b'{"n": -1}')


def test_a_struct_around_a_model_is_refused_by_name():
    class Around(msgspec.Struct):
        customer: Customer

    with pytest.raises(TopologyError, match="Around contains pydantic models, but pydantic cannot read it"):
        JsonSerde(Around)


def test_pydantic_is_not_loaded_for_other_types():
    program = (
        "import sys, msgspec; from pystreams.serde import serde_for, MsgpackSerde;"
        "serde_for(dict); serde_for(list[int]); MsgpackSerde(msgspec.defstruct('S', ['a']));"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

"""A record that does not fit the type of its topic stops the application with what does not fit, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from pystreams import App
from pystreams.errors import SerializationError
from pystreams.testing import TopologyTestDriver

WAY_OUT = ", or let deserialization_exception_handler skip such records (continue, dead_letter)"


@dataclass
class Order:
    item: str
    cents: int


class Payment(BaseModel):
    item: str
    cents: int


def refusal(type_: Any, data: bytes) -> SerializationError:
    app = App("shop")
    app.stream("orders", key=str, value=type_, step="read").foreach(print)
    with TopologyTestDriver(app) as driver, pytest.raises(SerializationError) as caught:
        driver.pipe_bytes("orders", b"o-1", data, 5)
    assert caught.value.where == "task 0_0, step read, orders-0 offset 0"
    assert caught.value.why == "it is the record's value that cannot be read"
    return caught.value


@pytest.mark.parametrize(
    ("type_", "data", "misfit"),
    [
        (Order, b'{"item": "tea"}', "Object missing required field `cents`"),
        (Order, b'{"item": "tea", "cents": "4"}', "Expected `int`, got `str` - at `$.cents`"),
        (Payment, b'{"item": "tea"}', "cents: Field required"),
        (Payment, b'{"item": "tea", "cents": "secret"}', "cents: Input should be a valid integer"),
    ],
    ids=str,
)
def test_the_field_that_does_not_fit_is_named_with_how_to_change_the_program(type_, data, misfit):
    error = refusal(type_, data)
    name = type_.__name__
    lead = f"a record of topic orders cannot be deserialized: the content does not fit {name}: {misfit}"
    assert error.what.startswith(lead)
    assert error.hint == f"change {name} so that it fits (a field with a default may be missing){WAY_OUT}"
    assert "secret" not in str(error)


def test_bytes_of_another_type_are_refused_with_how_to_read_them():
    error = refusal(int, b"three")
    assert error.what.endswith("8 bytes expected for int, 5 found")
    assert error.hint == f"read the topic with the types it was written with (key=, value=){WAY_OUT}"

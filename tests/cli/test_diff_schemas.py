"""``pystreams diff`` knows what a change of a model costs: fields, types and defaults, not names of classes."""

from __future__ import annotations

import json

import pytest

OLD = """
from dataclasses import dataclass
from pystreams import App

@dataclass
class Sum:
    cents: int = 0
    orders: int = 0

@dataclass
class Order:
    customer: str
    cents: int

app = App("shop")
orders = app.stream("orders", key=str, value=Order)
by_customer = orders.group_by(lambda key, order: order.customer, key=str)
by_customer.aggregate(Sum, lambda key, order, sums: Sum(sums.cents + order.cents), name="sums", value=Sum)
orders.to("copies")
"""

RENAMED_FIELD = ("    cents: int = 0\n    orders", "    euros: int = 0\n    orders")
NEW_FIELD = ("    orders: int = 0", "    orders: int = 0\n    last: str = ''")
NEW_NEEDED = ("    cents: int = 0\n    orders", "    last: str\n    cents: int = 0\n    orders")
MADE = (
    "aggregate(Sum, lambda key, order, sums: Sum(",
    "aggregate(lambda: Sum(''), lambda key, order, sums: Sum('', ",
)
NEEDS_EUROS = (
    ("aggregate(Sum, ", "aggregate(lambda: Sum(0), "),
    ("Sum(sums.cents + order.cents)", "Sum(sums.euros + order.cents)"),
)
WIDER = ("    cents: int = 0", "    cents: float = 0")
ANOTHER_TYPE = ("    orders: int = 0", "    orders: str = ''")
ANOTHER_DEFAULT = ("    orders: int = 0", "    orders: int = 1")
ANOTHER_CLASS = ("Sum", "Total")
ORDER_FIELD = ("    customer: str\n    cents: int", "    customer: str\n    cents: int\n    city: str = ''")
ORDER_RENAMED = ("    customer: str\n    cents: int", "    customer: str\n    amount: int = 0")


@pytest.fixture
def diff(pystreams, folder):
    """Compares the program with itself after some replacements."""
    (folder / "old_shop.py").write_text(OLD, encoding="utf-8")

    def compared(*replacements, arguments=()):
        program = OLD
        for was, now in replacements:
            assert was in program
            program = program.replace(was, now)
        (folder / "new_shop.py").write_text(program, encoding="utf-8")
        return pystreams("diff", *arguments, "old_shop.py", "new_shop.py")

    return compared


def rows(found):
    return {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in found.out.splitlines()}


def test_another_name_of_a_class_changes_nothing(diff):
    found = diff(ANOTHER_CLASS)
    assert (found.code, found.out) == (0, "")
    assert "equal" in found.err


def test_a_renamed_field_loses_what_it_held(diff):
    found = diff(RENAMED_FIELD)
    assert found.code == 1
    assert rows(found)[("store", "sums")] == [
        "loses a part of its content",
        "value.cents is gone (perhaps it is now euros)",
    ]
    lost, *ways = found.err.splitlines()[1:]
    assert lost == "Content is lost: store sums."
    assert ways[0].startswith(
        "- a field with another name is another field: if value.cents is now euros, keep the name in the stored bytes:"
        ' euros = msgspec.field(name="cents") in a msgspec.Struct, or euros = Field('
    )
    assert "run … --accept-loss sums" in found.err


def test_a_renamed_field_without_a_default_is_shown_with_how_to_keep_its_name_too(diff):
    found = diff(
        ("    cents: int = 0\n    orders: int = 0", "    euros: int\n    orders: int = 0"), *NEEDS_EUROS
    )
    assert rows(found)[("store", "sums")] == ["must be built anew", "value.euros is new, and is required"]
    assert "if value.cents is now euros, keep the name" in found.err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (NEW_FIELD, 'value.last is new, with the default ""'),
        (WIDER, "value.cents was int, is now float (whole numbers beyond 2^53 are rounded)"),
        (
            ANOTHER_DEFAULT,
            "value.orders has the default 1, no longer the default 0: so do values without the field",
        ),
    ],
)
def test_what_reads_on_is_kept_and_needs_a_stop(diff, change, why):
    found = diff(change)
    assert found.code == 2
    assert rows(found)[("store", "sums")] == ["keeps its content", why]
    assert "Stop all members" in found.err
    assert "the code of functions is not compared" in found.err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ([NEW_NEEDED, MADE], "value.last is new, and is required"),
        ([ANOTHER_TYPE], "value.orders was int, is now str"),
    ],
)
def test_what_cannot_be_read_must_be_built_anew(diff, change, why):
    found = diff(*change)
    assert found.code == 1
    assert rows(found)[("store", "sums")] == ["must be built anew", why]
    assert "pystreams reset" in found.err


def test_topics_are_compared_by_their_schemas(diff):
    found = diff(ORDER_FIELD)
    assert found.code == 2
    told = rows(found)
    assert told[("repartition topic", "shop-sums-repartition")] == [
        "keeps its content",
        'value.city is new, with the default ""',
    ]
    for kind, name in (("input", "orders"), ("output", "copies")):
        assert told[(kind, name)] == [
            "is read or written as another type",
            'value.city is new, with the default ""',
        ]
    assert told[("store", "sums")][0] == "keeps its content"


def test_records_that_wait_lose_what_stores_would(diff):
    found = diff(ORDER_RENAMED)
    assert found.code == 1
    verdict, why = rows(found)[("repartition topic", "shop-sums-repartition")]
    assert verdict == "loses a part of its content"
    assert why.startswith(
        "value.cents is gone (perhaps it is now amount): stop the old version when it has caught up"
    )
    assert "- let the old version catch up first (run it with --until-caught-up)" in found.err
    assert "if value.cents is now amount" in found.err
    assert "--accept-loss" not in found.err


def test_the_answer_in_json(diff):
    found = diff(RENAMED_FIELD, arguments=["--json"])
    told = json.loads(found.out)
    assert (told["application_id"], told["verdict"], told["exit_code"]) == ("shop", "loses", 1)
    assert {change["kind"]: change for change in told["changes"]}["store"] == {
        "kind": "store",
        "name": "sums",
        "verdict": "partly_lost",
        "loses": True,
        "why": "value.cents is gone (perhaps it is now euros)",
        "fields": ["value.cents"],
    }
    assert told["advice"] == [line for line in diff(RENAMED_FIELD).err.splitlines() if line in told["advice"]]
    assert told["advice"][1] == "Content is lost: store sums."
    assert any("--accept-loss sums" in line for line in told["advice"])
    equal = json.loads(diff(ANOTHER_CLASS, arguments=["--json"]).out)
    assert (equal["verdict"], equal["exit_code"]) == ("takes_over", 0)
    assert equal["advice"][0].startswith("The topologies are equal")
    assert json.loads(diff(NEW_FIELD, arguments=["--json"]).out)["verdict"] == "stop_first"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--json", "-s", "nonsense=1"]])
def test_wrong_usage_answers_nothing(diff, arguments):
    found = diff(arguments=arguments)
    assert (found.code, found.out) == (2, "")


def test_what_an_earlier_version_described_cannot_be_compared(pystreams, diff, folder):
    diff()
    described = json.loads(pystreams("describe", "old_shop.py", "--format", "json").out)
    for part in described["topology"]:
        del part["version"]
        for store in part["stores"]:
            store[2:4] = (
                ["pystreams.serde.primitives.StrSerde"],
                ["pystreams.serde.structured.JsonSerde", "Sum"],
            )
        for node in part["nodes"]:
            if node[0] != "processor":
                node[4:6] = (
                    ["pystreams.serde.primitives.StrSerde"],
                    ["pystreams.serde.structured.JsonSerde", "Order"],
                )
    (folder / "was.json").write_text(json.dumps(described), encoding="utf-8")
    found = pystreams("diff", "was.json", "new_shop.py")
    assert found.code == 1
    verdict, why = rows(found)[("store", "sums")]
    assert verdict == "cannot be compared"
    assert why.startswith("an earlier version of pystreams described one of the two topologies")
    assert "describe --format json" in found.err

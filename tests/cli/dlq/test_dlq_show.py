"""``dlq show`` prints single dead letters: where they came from, why they are there, key and value."""

from __future__ import annotations

import json

from tests.cli.dlq.dlq_kit import bury, create, failure

SHOP = """
import msgspec
from pystreams import App

class Order(msgspec.Struct):
    item: str
    cents: int

app = App("shop")
app.stream("orders", key=str, value=Order).to("out", key=str, value=Order)
"""


def test_a_letter_is_shown_with_origin_step_error_key_value_and_headers(pystreams):
    create("orders", "dead", partitions=2)
    bury(failure(b'{"n": 1}', partition=1, offset=17, headers=(("source", b"web"),)))
    shown = pystreams("dlq", "show", "dead")
    place, rest = shown.out.split("  ", 1)
    assert place.startswith("dead-")
    assert rest == (
        "1970-01-01T00:00:01Z\n"
        "  from:     orders-1@17\n"
        "  step:     parse\n"
        "  error:    builtins.ValueError: not a number\n"
        "  key:      a\n"
        '  value:    {"n": 1}\n'
        "  header:   source=web\n"
    )


def test_the_stack_trace_is_shown_on_demand(pystreams):
    create("orders", "dead")
    try:
        int("two")
    except ValueError as error:
        bury(failure(error=error))
    assert "Traceback" not in pystreams("dlq", "show", "dead").out
    shown = pystreams("dlq", "show", "dead", "--trace").lines
    at = shown.index("  trace:    Traceback (most recent call last):")
    assert shown[-1] == " " * 12 + "ValueError: invalid literal for int() with base 10: 'two'"
    assert len(shown) > at + 2


def test_bytes_are_guessed_as_consume_does_unless_a_type_is_given(pystreams):
    create("orders", "dead")
    bury(failure((7).to_bytes(8), key=b"\xff\x00"))
    shown = pystreams("dlq", "show", "dead").lines
    assert "  key:      0xff00" in shown
    assert "  value:    7" in shown
    assert "  value:    0000000000000007" in pystreams("dlq", "show", "dead", "--value-type", "hex").lines


def test_an_application_shows_what_it_reads_or_why_it_cannot(pystreams, folder):
    (folder / "letters_shop.py").write_text(SHOP, encoding="utf-8")
    create("orders", "dead")
    bury(
        failure(b'{"item": "tea", "cents": 5}', offset=1),
        failure(b'{"item": "tea"}', offset=2),
        failure(b"x", offset=3, topic="elsewhere"),
    )
    lines = pystreams("dlq", "show", "dead", "--app", "letters_shop").lines
    shown = [line.removeprefix("  value:    ") for line in lines if line.startswith("  value:")]
    assert shown[0] == "Order(item='tea', cents=5)"
    assert shown[1].startswith('{"item": "tea"}  (the application cannot read it: ')
    assert "does not fit Order: Object missing required field `cents`" in shown[1]
    assert shown[2] == "x"


def test_options_choose_and_limit(pystreams):
    create("orders", "dead")
    bury(*(failure(b"%d" % n, offset=n, step=f"step-{n % 2}") for n in range(6)))
    shown = pystreams("dlq", "show", "dead", "--step", "step-1", "--limit", "2")
    assert [line for line in shown.lines if "value:" in line] == ["  value:    1", "  value:    3"]
    assert shown.err == "There are more: --limit 2 ends here.\n"
    assert pystreams("dlq", "show", "dead", "--step", "step-1", "--limit", "3").err == ""


def test_what_was_replayed_is_said(pystreams):
    create("orders", "dead")
    bury(failure(offset=1, headers=(("__pystreams.replays", b"2"),)))
    assert "  replays:  failed after it was replayed 2 times" in pystreams("dlq", "show", "dead").lines
    pystreams("dlq", "replay", "dead", "--yes")
    assert "  replayed: yes" in pystreams("dlq", "show", "dead").lines


def test_json_has_the_record_and_the_failure(pystreams):
    create("orders", "dead")
    bury(failure(b'{"n": 1}', offset=4, headers=(("source", b"web"),)))
    (line,) = pystreams("dlq", "show", "dead", "--json").lines
    shown = json.loads(line)
    assert shown.pop("stack_trace").startswith("ValueError: not a number")
    assert shown == {
        "partition": 0,
        "offset": 0,
        "timestamp": 1_000,
        "key": "a",
        "value": {"n": 1},
        "headers": [["source", "web"]],
        "source": {"topic": "orders", "partition": 0, "offset": 4},
        "step": "parse",
        "error": "builtins.ValueError",
        "message": "not a number",
        "replays": 0,
        "replayed": False,
    }

"""A record in trouble: what the three handlers may decide, and what reaches the dead-letter topic."""

from __future__ import annotations

import logging

import pytest

from pystreams.errors import ConfigError
from pystreams.handlers import ErrorContext, RawContent, Response, dead_letter_record, resolve_handler
from pystreams.ids import TaskId


def context(**changes) -> ErrorContext:
    try:
        raise ValueError("no such carrier\nsecond line")
    except ValueError as error:
        raised = error
    values = {
        "topic": "flights",
        "partition": 2,
        "offset": 41,
        "timestamp": 1_000,
        "headers": (("trace", b"1"),),
        "step": "KSTREAM-MAPVALUES-0000000001",
        "task_id": TaskId(0, 2),
        "raw_key": b"UA",
        "raw_value": b"\xff",
        "key": "UA",
        "value": None,
        "exception": raised,
    }
    return ErrorContext(**values | changes)


@pytest.mark.parametrize(
    "setting,response,level",
    [
        ("fail", Response.FAIL, "INFO"),
        ("continue", Response.CONTINUE, "INFO"),
        ("dead_letter", Response.DEAD_LETTER, "INFO"),
    ],
)
def test_the_named_handlers_decide_and_log_the_position_without_content(setting, response, level, caplog):
    with caplog.at_level(logging.INFO):
        assert resolve_handler(setting)(context()) is response
    (record,) = caplog.records
    assert record.levelname == level
    assert "task 0_2, step KSTREAM-MAPVALUES-0000000001, flights-2 offset 41: ValueError" in record.message
    assert "UA" not in record.message
    assert "second line" not in record.message


def test_a_function_decides_for_itself():
    seen = []
    handler = resolve_handler(lambda c: seen.append(c.offset) or Response.CONTINUE)
    assert handler(context()) is Response.CONTINUE
    assert seen == [41]


def test_a_function_that_decides_nothing_is_reported():
    def forgot(c):
        pass

    with pytest.raises(ConfigError, match=r"forgot returned None") as caught:
        resolve_handler(forgot)(context())
    assert "Response.FAIL" in caught.value.hint
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("wrong", ["ignore", None, 3, ["fail"]])
def test_another_setting_is_an_error(wrong):
    with pytest.raises(ConfigError, match="fail, continue, dead_letter"):
        resolve_handler(wrong)


def test_a_dead_letter_is_the_input_record_with_headers_that_say_why():
    key, value, timestamp, headers = dead_letter_record(context())
    assert (key, value, timestamp) == (b"UA", b"\xff", 1_000)
    told = dict(headers)
    assert told["trace"] == b"1"
    assert told["__streams.errors.exception"] == b"builtins.ValueError"
    assert told["__streams.errors.message"] == b"no such carrier\nsecond line"
    assert told["__streams.errors.stacktrace"].startswith(b"Traceback (most recent call last)")
    assert told["__streams.errors.topic"] == b"flights"
    assert told["__streams.errors.partition"] == b"2"
    assert told["__streams.errors.offset"] == b"41"
    assert headers[0][0] == "trace"


def test_beyond_javas_headers_a_dead_letter_names_the_step():
    told = dict(dead_letter_record(context())[3])
    assert told["__streams.errors.step"] == b"KSTREAM-MAPVALUES-0000000001"
    assert "__streams.errors.content" not in told


def test_a_dead_letter_whose_bytes_are_not_the_inputs_says_what_they_are():
    told = dict(dead_letter_record(context(content=RawContent.STORE))[3])
    assert told["__streams.errors.content"] == b"store"


def test_a_dead_letter_out_of_punctuation_has_no_topic():
    c = context(topic=None, partition=-1, offset=-1, raw_key=None, raw_value=None)
    key, value, _, headers = dead_letter_record(c)
    assert (key, value) == (None, None)
    assert dict(headers)["__streams.errors.topic"] is None
    assert c.where == "task 0_2, step KSTREAM-MAPVALUES-0000000001, punctuation"

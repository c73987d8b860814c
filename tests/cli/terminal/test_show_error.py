"""The commands that a message advises concern the log of the command that failed."""

from __future__ import annotations

from pystreams.cli.terminal.show_error import on_the_same_log


def test_each_command_gets_the_log_of_the_command_that_failed():
    hint = (
        "create it: pystreams topics create a; or keep it: pystreams topics alter b --config retention.ms=-1"
    )
    assert on_the_same_log(hint, ["app", "--embedded-log=x.db", "--bootstrap-servers", "k:9092"]) == (
        "create it: pystreams topics create --embedded-log=x.db --bootstrap-servers k:9092 a; or keep it:"
        " pystreams topics alter --embedded-log=x.db --bootstrap-servers k:9092 b --config retention.ms=-1"
    )


def test_a_command_that_names_its_log_gets_no_other_one():
    hint = "pystreams topics create a --bootstrap-servers k:9092; `pystreams run --create-topics` does it"
    assert on_the_same_log(hint, ["app", "--bootstrap-servers=k:9092"]) == hint

"""Topics that are missing, vanish, or have another width: said with the command that helps."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.port import TopicSpec
from pystreams.errors import TopicError, TopologyError
from pystreams.runtime.streams import Streams
from tests.live.bad_input.kit import copies, failure_of
from tests.live.support import Log, caught_up, eventually, run_to_the_end

PROGRAM = """
from pystreams import App
app = App("numbers")
app.stream("numbers", key=str, value=int).to("results")
"""


@pytest.fixture
def program(folder: Any) -> str:
    (folder / "topics_program.py").write_text(PROGRAM, encoding="utf-8")
    return "topics_program"


def refusal(log: Log, app: App) -> str:
    with pytest.raises((TopicError, TopologyError)) as caught:
        Streams(app, broker=log.broker).start()
    return str(caught.value)


def test_the_command_that_missing_topics_are_answered_with_makes_the_application_run(
    pystreams, program
) -> None:
    refused = pystreams("run", program, "--until-caught-up")
    assert refused.code == 4
    assert "Traceback" not in refused.err
    (command,) = re.findall(r"pystreams (topics create [\w.-]+ [\w.-]+)", refused.err)
    assert pystreams(*command.split()).code == 0
    assert pystreams("run", program, "--until-caught-up").code == 0


def test_a_missing_dead_letter_topic_is_an_error_at_start(pystreams, program) -> None:
    pystreams("topics", "create", "numbers", "results")
    refused = pystreams(
        "run",
        program,
        "--until-caught-up",
        "-s",
        "deserialization_exception_handler=dead_letter",
        "-s",
        "errors_dead_letter_queue_topic_name=dead",
    )
    assert refused.code == 4
    assert "dead (written)" in refused.err
    assert "pystreams topics create dead" in refused.err


def test_dead_letters_without_a_topic_are_an_error_at_start(pystreams, program) -> None:
    pystreams("topics", "create", "numbers", "results")
    refused = pystreams("run", program, "-s", "processing_exception_handler=dead_letter")
    assert refused.code == 2
    assert "errors_dead_letter_queue_topic_name" in refused.err


def test_a_topic_that_vanishes_while_it_is_read_ends_the_application(log: Log) -> None:
    log.create("in", "out")
    streams = log.start(copies(log))
    caught_up(streams)
    log.admin.delete_topics(["in"])
    eventually(lambda: streams.finished, "the end")
    assert isinstance(streams.failure, TopicError)
    assert "'in' was deleted while it was being read" in str(streams.failure)
    assert "in-0" in str(streams.failure)


def test_an_output_that_vanishes_ends_the_application_and_nothing_is_lost(log: Log) -> None:
    log.create("in", "out")
    streams = log.start(copies(log))
    log.write("in", [("k", 1, 1)])
    caught_up(streams)
    log.admin.delete_topics(["out"])
    log.write("in", [("k", 2, 2)])
    eventually(lambda: streams.finished, "the end")
    assert isinstance(streams.failure, TopicError)
    assert "'out' was deleted while records were being written" in str(streams.failure)
    log.create("out")
    run_to_the_end(log, copies(log))
    assert [record.value for record in log.read("out")] == [2], "what was written before went with the topic"
    assert log.table("copies-counts-changelog") == {"k": 2}


def test_a_chosen_topic_that_is_not_there_names_the_step_and_the_record(log: Log) -> None:
    log.create("in", "to-1")
    log.write("in", [("k", 1, 1), ("k", 2, 2)])
    app = log.app("chosen", processing_exception_handler="continue", production_exception_handler="continue")
    app.stream("in", key=str, value=int).to(lambda key, value: f"to-{value}")
    failure = failure_of(log, app)
    assert isinstance(failure, TopicError)
    assert "to-2" in failure.what
    for place in ("task 0_0", "KSTREAM-SINK-0000000001", "in-0 offset 1"):
        assert place in failure.where
    assert "pystreams topics create to-2" in failure.hint
    log.create("to-2")
    run_to_the_end(log, app)
    assert [len(log.read(topic)) for topic in ("to-1", "to-2")] == [1, 1]


def test_inputs_that_are_joined_must_be_equally_wide(log: Log) -> None:
    log.create("orders", partitions=2)
    log.create("customers", partitions=3)
    app = log.app("joined")
    customers = app.table("customers", key=str, value=int)
    app.stream("orders", key=str, value=int).join(customers, lambda one, two: one + two).foreach(print)
    message = refusal(log, app)
    assert "orders has 2" in message
    assert "customers has 3" in message
    assert "repartition" in message, "what helps"


def test_an_input_that_was_made_anew_with_another_width_is_refused(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.write("in", [("k", i, i) for i in range(10)])
    run_to_the_end(log, copies(log))
    log.admin.delete_topics(["in"])
    log.create("in", partitions=3)
    message = refusal(log, copies(log))
    assert "copies-counts-changelog has 2 partitions, but the topology needs 3" in message
    assert "pystreams reset" in message


def test_a_topic_cannot_be_created_again_with_another_width(log: Log) -> None:
    log.create("in", partitions=2)
    with pytest.raises(TopicError) as caught:
        log.admin.create_topics([TopicSpec("in", 3, {})])
    assert "in" in str(caught.value)
    assert "2" in str(caught.value)
    assert "3" in str(caught.value)

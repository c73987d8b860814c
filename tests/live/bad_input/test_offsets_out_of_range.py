"""Records that were deleted before they were read: an error where state would miss them, a warning elsewhere."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.port import CommittedOffset
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from tests.live.bad_input.kit import failure_of
from tests.live.support import Log, caught_up, eventually, run_to_the_end

IN = TopicPartition("in", 0)


@pytest.fixture(autouse=True)
def ten(log: Log) -> None:
    log.create("in", "out")
    log.write("in", [("k", i, i) for i in range(10)])


def counting(log: Log, **settings: Any) -> App:
    app = log.app("counting", **settings)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def copying(log: Log, look: Any = None) -> App:
    app = log.app("copying", buffered_records_per_partition=1)
    values = app.stream("in", key=str, value=int)
    (values if look is None else values.peek(look)).to("out")
    return app


@pytest.mark.parametrize("committed,lost", [(3, "3 records were deleted"), (15, "created anew")])
def test_a_stateful_application_stops_and_says_what_is_missing(log: Log, committed: int, lost: str) -> None:
    run_to_the_end(log, counting(log))
    log.admin.set_group_offsets("counting", {IN: CommittedOffset(committed)})
    log.admin.delete_records({IN: 6}).wait()
    failure = failure_of(log, counting(log))
    assert isinstance(failure, OffsetOutOfRangeError)
    assert f"committed offset {committed} of in-0" in failure.what
    assert "task 0_0" in failure.where
    assert "6 to 10" in failure.where
    assert lost in failure.why
    assert "pystreams reset" in failure.hint


def test_the_gap_can_be_accepted_by_setting_the_offset(log: Log) -> None:
    run_to_the_end(log, counting(log))
    log.admin.set_group_offsets("counting", {IN: CommittedOffset(3)})
    log.admin.delete_records({IN: 6}).wait()
    failure_of(log, counting(log))
    log.admin.set_group_offsets("counting", {IN: CommittedOffset(6)})
    run_to_the_end(log, counting(log))
    assert log.table("out") == {"k": 10 + 4}


def test_the_reset_that_the_message_names_starts_afresh(folder: Any, pystreams: Any) -> None:
    from pystreams.broker.embedded import EmbeddedBroker

    (folder / "counting_program.py").write_text(
        "from pystreams import App\napp = App('counts')\n"
        "app.stream('in', value=str).group_by(lambda v: v).count(name='c').to_stream().to('out')\n",
        encoding="utf-8",
    )
    run = ("run", "counting_program", "--until-caught-up")
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="a\nb\na\na\n")
    assert pystreams(*run).code == 0
    broker = EmbeddedBroker(folder / ".pystreams" / "log.db")
    admin = broker.admin()
    admin.delete_records({IN: 2}).wait()
    admin.set_group_offsets("counts", {IN: CommittedOffset(1)})
    broker.close()
    refused = pystreams(*run)
    assert refused.code == 4
    assert "Traceback" not in refused.err
    assert "pystreams reset" in refused.err
    assert pystreams("reset", "counting_program", "--yes").code == 0
    assert pystreams(*run).code == 0
    last = dict(line.split("\t")[1:] for line in pystreams("consume", "out").lines)
    assert last["a"] == "2", "what is left of the input"


def test_a_stateless_application_goes_on_with_a_warning(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.admin.set_group_offsets("copying", {IN: CommittedOffset(3)})
    log.admin.delete_records({IN: 6}).wait()
    with caplog.at_level(logging.WARNING):
        run_to_the_end(log, copying(log))
    assert [record.value for record in log.read("out")] == [6, 7, 8, 9]
    assert "committed offset 3 of in-0" in caplog.text


@pytest.mark.parametrize("stateful", [True, False])
def test_records_that_are_deleted_while_the_application_runs(log: Log, stateful: bool) -> None:
    """One partition is held up while the log loses what it would have read next."""
    held, go_on = threading.Event(), threading.Event()

    def look(value: int) -> None:
        held.set()
        go_on.wait(20)

    app = log.app("behind", buffered_records_per_partition=1)
    values = app.stream("in", key=str, value=int).peek(look)
    values.to("out")
    if stateful:
        values.group_by_key().count(name="counts")
    # More than one read takes, so that the rest is still in the log.
    log.write("in", [("k", i, i) for i in range(10, 40_000)])
    streams = log.start(app)
    eventually(held.is_set, "the first record")
    log.admin.delete_records({IN: 39_990}).wait()
    go_on.set()
    if stateful:
        eventually(lambda: streams.finished, "the failure")
        assert isinstance(streams.failure, OffsetOutOfRangeError)
        assert "task 0_0" in streams.failure.where
        assert "in-0" in str(streams.failure)
    else:
        caught_up(streams)
        assert [record.value for record in log.read("out")][-10:] == list(range(39_990, 40_000))

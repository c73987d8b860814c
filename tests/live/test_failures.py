"""A thread that fails is replaced, or ends the client, or all clients: as the handler says. Nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from pystreams.app import App
from pystreams.errors import ProcessingError, TopologyError
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.uncaught import UncaughtExceptionResponse
from tests.live.support import Log, caught_up, eventually, run_to_the_end, running


def fails_once(log: Log, at: int, **settings: object) -> tuple[App, threading.Event]:
    """Counts, but raises once when it sees the value ``at``."""
    failed = threading.Event()

    def check(value: int) -> None:
        if value == at and not failed.is_set():
            failed.set()
            raise ValueError("a hiccup")

    app = log.app("hiccup", **settings)
    app.stream("in", key=str, value=int).peek(check).group_by_key().count(name="counts").to_stream().to("out")
    return app, failed


def responding(response: UncaughtExceptionResponse) -> Callable[[Streams], None]:
    return lambda streams: streams.set_uncaught_exception_handler(lambda error: response)


@pytest.fixture(autouse=True)
def hundred(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.write("in", [(f"k{i % 7}", i, i) for i in range(100)])


def counts() -> dict[str, int]:
    return {f"k{i}": len(range(i, 100, 7)) for i in range(7)}


def test_by_default_the_client_ends_and_says_why(log: Log) -> None:
    app, _ = fails_once(log, 50)
    streams = log.start(app)
    eventually(lambda: streams.finished, "the end")
    assert streams.state is ClientState.ERROR
    assert isinstance(streams.failure, ProcessingError)
    assert "a hiccup" in str(streams.failure)


def test_a_restart_after_a_failure_counts_every_record_once(log: Log) -> None:
    app, _ = fails_once(log, 50)
    streams = log.start(app)
    eventually(lambda: streams.finished, "the end")
    run_to_the_end(log, app)
    assert log.table("out") == counts()


def test_a_replaced_thread_goes_on_from_the_last_commit(log: Log) -> None:
    app, failed = fails_once(log, 50)
    streams = log.start(app, prepare=responding(UncaughtExceptionResponse.REPLACE_THREAD))
    eventually(lambda: failed.is_set() and streams.caught_up(), "caught up again")
    assert log.table("out") == counts()
    assert streams.metrics.total("failed-stream-threads") == 1


def test_other_threads_take_over_what_a_failed_thread_had_when_it_is_replaced(log: Log) -> None:
    app, failed = fails_once(log, 50, num_stream_threads=2)
    streams = log.start(app, prepare=responding(UncaughtExceptionResponse.REPLACE_THREAD))
    eventually(lambda: failed.is_set() and streams.caught_up(), "caught up again")
    assert log.table("out") == counts()


def test_the_whole_application_stops_when_asked_to(log: Log) -> None:
    failing, failed = fails_once(log, 1_000)
    one = log.start(failing, prepare=responding(UncaughtExceptionResponse.SHUTDOWN_APPLICATION))
    running(one)
    two = log.start(failing, prepare=responding(UncaughtExceptionResponse.SHUTDOWN_APPLICATION))
    running(two)
    log.write("in", [("k", 1_000, 1)])
    eventually(lambda: one.finished and two.finished, "both ended")
    assert failed.is_set()
    assert {one.state, two.state} == {ClientState.ERROR}
    assert any("asked the whole application to stop" in str(client.failure) for client in (one, two))


def test_a_record_that_fails_is_not_tried_by_those_who_are_asked_to_stop(log: Log) -> None:
    tries: list[int] = []

    def check(value: int) -> None:
        if value == 1_000:
            tries.append(value)
            raise ValueError("a lasting failure")

    app = log.app("hiccup")
    app.stream("in", key=str, value=int).peek(check).to("out")
    clients = []
    for _ in range(2):
        clients.append(log.start(app, prepare=responding(UncaughtExceptionResponse.SHUTDOWN_APPLICATION)))
        running(clients[-1])
    log.write("in", [("k", 1_000, 1)])
    eventually(lambda: all(client.finished for client in clients), "both ended")
    assert {client.state for client in clients} == {ClientState.ERROR}
    assert tries == [1_000]


def test_a_member_with_another_topology_is_refused_and_the_running_one_goes_on(log: Log) -> None:
    app, _ = fails_once(log, -1)
    streams = log.start(app)
    caught_up(streams)
    changed = log.app("hiccup", state_dir=log.path / "other")
    positive = changed.stream("in", key=str, value=int).filter(lambda value: value > 3)
    positive.group_by_key().count(name="counts").to_stream().to("out")
    newcomer = log.start(changed)
    eventually(lambda: newcomer.finished, "the newcomer ends")
    assert isinstance(newcomer.failure, TopologyError)
    assert "differs from the one that the group runs" in str(newcomer.failure)
    log.write("in", [("k0", 7, 7)])
    eventually(lambda: streams.caught_up() and log.table("out")["k0"] == counts()["k0"] + 1, "goes on")


def test_a_client_that_is_closed_while_it_starts_starts_no_threads(log: Log) -> None:
    app, _ = fails_once(log, -1)
    streams = Streams(app, broker=log.broker)

    def close(new: ClientState, _old: ClientState) -> None:
        if new is ClientState.REBALANCING:
            other = threading.Thread(target=streams.close)
            other.start()
            other.join()

    streams.set_state_listener(close)
    streams.start()
    assert streams.state is ClientState.NOT_RUNNING
    assert streams.progress().threads == ()
    assert log.admin.group_members("hiccup") == []


def test_closing_from_a_stream_thread_begins_to_close(log: Log) -> None:
    clients: list[Streams] = []
    app = log.app("closer")
    app.stream("in", key=str, value=int).foreach(lambda value: clients[0].close())
    log.start(app, prepare=clients.append)
    eventually(lambda: clients[0].state is ClientState.NOT_RUNNING, "the end")


def test_state_changes_are_reported_in_order(log: Log) -> None:
    seen: list[ClientState] = []
    app, _ = fails_once(log, -1)
    streams = log.start(app, prepare=lambda s: s.set_state_listener(lambda new, old: seen.append(new)))
    caught_up(streams)
    streams.close()
    assert seen == [
        ClientState.REBALANCING,
        ClientState.RUNNING,
        ClientState.PENDING_SHUTDOWN,
        ClientState.NOT_RUNNING,
    ]


def test_a_listener_has_heard_of_the_end_when_close_returns(log: Log) -> None:
    seen: list[ClientState] = []

    def slow(new: ClientState, _old: ClientState) -> None:
        if new is ClientState.NOT_RUNNING:
            # A close that does not wait for the listener returns within this time. There is nothing else to wait for:
            # the close that is tested returns only after the listener.
            threading.Event().wait(0.2)
        seen.append(new)

    app, _ = fails_once(log, -1)
    streams = log.start(app, prepare=lambda s: s.set_state_listener(slow))
    caught_up(streams)
    assert streams.close()
    assert seen[-1] is ClientState.NOT_RUNNING


def test_a_client_that_ends_while_it_is_asked_has_not_caught_up(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = fails_once(log, -1)
    streams = log.start(app)
    caught_up(streams)
    everything_is_committed = ClientContext.everything_is_committed

    def asked_too_late(context: ClientContext) -> bool:
        assert streams.close()
        return everything_is_committed(context)

    monkeypatch.setattr(ClientContext, "everything_is_committed", asked_too_late)
    assert streams.caught_up() is False


def test_a_state_listener_that_raises_stops_nothing(log: Log) -> None:
    def listener(new: ClientState, old: ClientState) -> None:
        raise ValueError("a listener with a hiccup")

    app, _ = fails_once(log, 50)
    streams = log.start(app, prepare=lambda s: s.set_state_listener(listener))
    eventually(lambda: streams.finished, "the end")
    assert "a hiccup" in str(streams.failure)
    assert "listener" not in str(streams.failure)


def test_a_signal_ends_run_cleanly(log: Log) -> None:
    app, _ = fails_once(log, -1, commit_interval_ms=600_000)
    streams = Streams(app, broker=log.broker)
    before = signal.getsignal(signal.SIGTERM)

    def stop_when_processed(progress: object) -> None:
        if streams.progress().records >= 100:
            os.kill(os.getpid(), signal.SIGTERM)

    streams.run(on_progress=stop_when_processed)
    assert streams.state is ClientState.NOT_RUNNING
    assert signal.getsignal(signal.SIGTERM) is before
    assert log.table("out") == counts(), "the clean end has committed"


def test_run_until_caught_up_does_not_wait_for_the_commit_interval(log: Log) -> None:
    app, _ = fails_once(log, -1, commit_interval_ms=600_000)
    Streams(app, broker=log.broker).run(until_caught_up=True)
    assert log.table("out") == counts()


def test_run_raises_what_ended_the_application(log: Log) -> None:
    app, _ = fails_once(log, 50)
    with pytest.raises(ProcessingError, match="a hiccup"):
        Streams(app, broker=log.broker).run()

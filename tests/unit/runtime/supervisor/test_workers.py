"""Workers are kept alive: started again after a back-off, and given up where another start would only fail again."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.clock import ManualClock
from pystreams.runtime.health import Health
from pystreams.runtime.supervisor.restarts import RestartPolicy
from pystreams.runtime.supervisor.supervision import (
    AWAY_MS,
    IDLE_MS,
    SILENCE_MS,
    UNREADY_MS,
    Instruction,
    Kill,
    Note,
    Start,
    Stop,
    Supervision,
)
from pystreams.runtime.supervisor.worker import (
    GOODBYE_MS,
    WORKER_SUCCESSORS,
    Failure,
    Report,
    Worker,
    WorkerState,
)
from pystreams.runtime.supervisor.worker_notes import describe_exit
from pystreams.transitions import IllegalTransitionError

POLICY = RestartPolicy()
RUNNING = Report("running", tasks=1)


class Scene:
    """Workers under supervision, and time that moves when told to."""

    def __init__(self, workers: int = 2, *, until_caught_up: bool = False, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.supervision = Supervision(
            workers, self.clock, until_caught_up=until_caught_up, choose=random.Random(seed)
        )
        assert self.supervision.begin() == [Start(number + 1) for number in range(workers)]

    def run(self, *numbers: int, report: Report = RUNNING) -> None:
        for number in numbers or self.supervision.workers:
            self.supervision.heard(number, report)

    def die(self, number: int, exit_code: int = -9, failure: Failure | None = None) -> list[Instruction]:
        if failure is not None:
            self.supervision.heard(number, failure)
        return self.supervision.ended(number, exit_code)

    def advance(self, duration_ms: float, *, watched: bool = True) -> list[Instruction]:
        """Let time pass, with a tick now and then if somebody watches; what the last tick brings, or the first that
        brings anything."""
        left = round(duration_ms)
        while watched and left > AWAY_MS:
            left -= round(AWAY_MS)
            self.clock.advance_ms(round(AWAY_MS))
            told = self.supervision.tick()
            if told:
                self.clock.advance_ms(left)
                return told
        self.clock.advance_ms(left)
        return self.supervision.tick()

    def until_restart(self, number: int) -> int:
        """How long it takes until a dead worker is started again, in ms."""
        for waited in range(0, 200_000, 10):
            if Start(number) in self.advance(10):
                return waited + 10
        raise AssertionError(f"worker {number} is not started again")

    def state(self, number: int) -> WorkerState:
        return self.supervision.workers[number].state


def test_the_wait_is_short_after_a_first_failure_and_doubles_with_each_further_one_up_to_a_bound():
    scene = Scene()
    scene.run()
    waits = []
    for _ in range(9):
        scene.die(1)
        waits.append(scene.until_restart(1))
        scene.run(1)
    first, *further = waits
    assert POLICY.first_ms <= first <= 2 * POLICY.first_ms + 10
    doubled = [min(POLICY.backoff_ms_max, POLICY.backoff_ms * 2**n) for n in range(1, 9)]
    for waited, backoff in zip(further, doubled, strict=True):
        assert backoff <= waited <= backoff * (1 + POLICY.jitter) + 10


@given(failures=st.integers(1, 10_000), seed=st.integers())
def test_no_restart_is_faster_than_the_back_off(failures, seed):
    delay = POLICY.delay_ms(failures, random.Random(seed))
    doubled = min(POLICY.backoff_ms_max, POLICY.backoff_ms * 2.0 ** min(failures - 1, 60))
    assert delay >= (POLICY.first_ms if failures == 1 else doubled)
    assert delay <= POLICY.backoff_ms_max * (1 + POLICY.jitter)


def test_who_ran_well_waits_as_after_a_first_failure():
    scene = Scene()
    scene.run()
    for _ in range(4):
        scene.die(1)
        scene.until_restart(1)
        scene.run(1)
    scene.advance(POLICY.ran_well_ms)
    scene.die(1)
    assert scene.until_restart(1) <= 2 * POLICY.first_ms + 10


def test_workers_that_died_together_do_not_come_back_together():
    scene = Scene(8)
    scene.run()
    for number in scene.supervision.workers:
        scene.die(number)
    due = [worker.retry_at_ms for worker in scene.supervision.workers.values()]
    assert max(due) - min(due) > POLICY.first_ms / 2


def test_kills_never_end_the_run():
    scene = Scene()
    scene.run()
    for _ in range(50):
        told = scene.die(2)
        assert "SIGKILL" in told[0].text
        scene.until_restart(2)
        scene.run(2)
    assert scene.supervision.summary().restarts == 50
    assert scene.supervision.failure is None


@pytest.mark.parametrize("ran_before", [True, False])
def test_what_only_the_user_can_mend_ends_the_run_at_once(ran_before):
    scene = Scene(3)
    if ran_before:
        scene.run()
    failure = Failure("no such setting", exit_code=2, hopeless=True)
    assert scene.die(2, 2, failure) == [Stop(1), Stop(3)]
    assert scene.supervision.failure == failure
    scene.die(1, 2, Failure("no such setting", exit_code=2, hopeless=True))
    scene.die(3, 0)
    assert scene.supervision.over
    assert scene.supervision.failure is failure


def test_what_goes_wrong_before_anything_has_run_ends_the_run_at_once():
    scene = Scene()
    scene.die(1, 4, Failure("cannot be reached", exit_code=4, action="retry"))
    assert scene.supervision.stopping
    assert scene.supervision.failure.exit_code == 4


def test_a_log_that_is_away_for_a_while_is_waited_for():
    scene = Scene(1)
    scene.run()
    for _ in range(30):
        scene.die(1, 4, Failure("cannot be reached", exit_code=4, action="retry"))
        scene.until_restart(1)
    scene.run(1)
    assert scene.supervision.failure is None


def test_a_failure_that_every_worker_runs_into_ends_the_run():
    scene = Scene(3)
    scene.run()
    failure = Failure("raised ValueError", where="in-0 offset 7")
    assert isinstance(scene.die(1, 1, failure)[0], Note)
    assert isinstance(scene.die(2, 1, failure)[0], Note)
    assert scene.die(3, 1, failure) == []
    assert scene.supervision.over
    assert scene.supervision.failure.what == "raised ValueError"
    assert "3 times" in scene.supervision.failure.why


def test_different_failures_do_not_add_up():
    scene = Scene(1)
    scene.run()
    for offset in range(20):
        scene.die(1, 1, Failure("raised ValueError", where=f"in-0 offset {offset}"))
        scene.until_restart(1)
        scene.run(1)
    assert scene.supervision.failure is None


def test_failures_with_good_times_between_them_do_not_add_up():
    scene = Scene(1)
    scene.run()
    for _ in range(20):
        scene.advance(POLICY.ran_well_ms)
        scene.die(1, 1, Failure("out of memory"))
        scene.until_restart(1)
        scene.run(1)
    assert scene.supervision.failure is None


def test_processes_that_die_without_a_word_are_given_up():
    scene = Scene(1)
    for _ in range(POLICY.stillborn_max - 1):
        scene.die(1, -6)
        scene.until_restart(1)
    scene.die(1, -6)
    assert scene.supervision.over
    assert "SIGABRT" in scene.supervision.failure.what
    assert scene.supervision.failure.exit_code == 1


def test_a_stop_is_for_all_and_restarts_nobody():
    scene = Scene(4)
    scene.run(1, 2, 3)
    scene.die(1)
    assert scene.supervision.stop() == [Stop(2), Stop(3), Stop(4)]
    assert [scene.state(n) for n in (1, 2, 3, 4)] == [
        WorkerState.ENDED,
        *[WorkerState.STOPPING] * 3,
    ]
    for number in (2, 3, 4):
        assert scene.die(number, 0) == []
    assert scene.advance(100_000) == []
    assert scene.supervision.over
    assert scene.supervision.failure is None


def test_who_dies_while_it_stops_makes_the_stop_a_failure():
    scene = Scene()
    scene.run()
    scene.supervision.stop()
    scene.die(1, -9)
    scene.die(2, 0)
    assert "worker 1 was killed by SIGKILL" in scene.supervision.failure.what


def test_who_is_stopped_before_it_began_has_nothing_to_lose():
    scene = Scene(1)
    scene.supervision.stop()
    scene.die(1, -15)
    assert scene.supervision.over
    assert scene.supervision.failure is None


def test_all_stop_once_all_that_run_have_caught_up():
    scene = Scene(3, until_caught_up=True)
    done = Report("running", tasks=1, caught_up=True)
    scene.run(1, 2)
    scene.run(1, report=done)
    assert scene.advance(100) == []
    scene.run(2, report=done)
    assert scene.advance(100) == [Stop(1), Stop(2), Stop(3)]


def test_a_worker_that_ends_by_itself_is_started_again():
    scene = Scene()
    scene.run()
    assert "exit code 0" in scene.die(1, 0)[0].text
    scene.until_restart(1)


def test_records_are_counted_over_restarts_and_workers():
    scene = Scene()
    scene.run(1, report=Report("running", records=10, internal_records=4, lag=5, tasks=1))
    scene.run(2, report=Report("running", records=20, lag=7, tasks=1))
    assert (scene.supervision.summary().records, scene.supervision.summary().lag) == (30, 12)
    scene.die(1)
    scene.until_restart(1)
    scene.run(1, report=Report("restoring", records=3, internal_records=2, lag=None, tasks=1))
    summary = scene.supervision.summary()
    assert summary.internal_records == 6
    assert (summary.records, summary.lag, summary.tasks, summary.restarts) == (33, None, 2, 1)


def test_more_workers_than_tasks_are_reported_once_and_why():
    scene = Scene(3)
    scene.run(1, report=Report("running", tasks=1, all_tasks=1))
    scene.run(2, 3, report=Report("running", all_tasks=1))
    assert scene.advance(0) == []
    told = scene.advance(IDLE_MS)
    assert "workers 2, 3 have no task: " in told[0].text
    assert "the application has one task, and a task runs in one worker at a time" in told[0].text
    assert scene.advance(IDLE_MS) == []


@pytest.mark.parametrize("state", ["rebalancing", "running"])
def test_tasks_that_change_hands_make_nobody_idle(state):
    """They are given up by one, and taken by the other a while later, who may seem to run until then."""
    scene = Scene()
    for _ in range(10):
        scene.run(1, report=Report("running", tasks=1, all_tasks=2))
        scene.run(2, report=Report(state, all_tasks=2))
        assert scene.advance(IDLE_MS) == []


@pytest.mark.parametrize("workers", [2, 3])
def test_who_has_no_task_while_another_has_several_may_still_get_one(workers: int):
    scene = Scene(workers)
    for _ in range(10):
        scene.run(1, report=Report("running", tasks=2, all_tasks=2))
        scene.run(*range(2, workers + 1), report=Report("running", all_tasks=2))
        assert scene.advance(IDLE_MS) == []


@pytest.mark.parametrize("dead", [True, False])
def test_the_lag_is_not_known_while_tasks_may_be_nobodys(dead):
    scene = Scene()
    scene.run(report=Report("running", lag=0, tasks=1))
    assert scene.supervision.summary().lag == 0
    scene.die(1)
    assert scene.supervision.summary().lag is None
    if not dead:
        scene.until_restart(1)
        scene.run(1, report=Report("rebalancing"))
    assert scene.supervision.summary().lag is None


READY = Report("running", lag=3, tasks=1, health=Health(live=True, ready=True))


@pytest.mark.parametrize("lag_max,ready", [(None, True), (6, True), (5, False)])
def test_workers_are_ready_together_and_their_lags_add_up(lag_max, ready):
    scene = Scene()
    assert scene.supervision.health(lag_max).reasons == ("worker 1: starting", "worker 2: starting")
    scene.run(report=READY)
    reasons = () if ready else ("6 records wait, more than 5",)
    assert scene.supervision.health(lag_max) == Health(True, ready, reasons)


def test_workers_without_tasks_have_nothing_to_catch_up_with():
    scene = Scene()
    scene.run(report=msgspec.structs.replace(READY, tasks=0, lag=0))
    assert scene.supervision.health(0) == Health(live=True, ready=True)
    assert scene.supervision.summary().lag is None


def test_workers_that_are_asked_to_stop_are_stopping():
    scene = Scene()
    scene.run(report=READY)
    assert not scene.supervision.health(None).stopping
    scene.supervision.stop()
    assert scene.supervision.health(None).stopping


def test_one_worker_that_is_not_ready_is_named_with_its_reason():
    scene = Scene()
    scene.run(report=READY)
    restoring = Health(live=True, ready=False, reasons=("t restores 0_1",))
    scene.run(2, report=msgspec.structs.replace(READY, health=restoring))
    assert scene.supervision.health(None) == Health(True, False, ("worker 2: t restores 0_1",))


def test_a_worker_that_is_started_again_is_not_ready_and_no_reason_to_restart_all():
    scene = Scene()
    scene.run(report=READY)
    scene.die(1)
    assert scene.supervision.health(None) == Health(True, False, ("worker 1: backing off",))
    scene.until_restart(1)
    scene.run(1, report=READY)
    assert scene.supervision.health(None).ready


def test_a_worker_that_hangs_is_a_reason_to_restart_all():
    scene = Scene()
    scene.run(report=READY)
    stuck = Health(live=False, ready=False, reasons=("t has been at the same work for 301 s",))
    scene.run(2, report=msgspec.structs.replace(READY, health=stuck))
    found = scene.supervision.health(None)
    assert not found.live
    assert found.reasons == ("worker 2: t has been at the same work for 301 s",)


def test_a_worker_that_reports_no_more_is_not_ready_and_no_reason_to_restart_all():
    scene = Scene()
    scene.run(report=READY)
    for _ in range(10):
        scene.advance(UNREADY_MS / 10)
        scene.run(1, report=READY)
    assert scene.supervision.health(None) == Health(True, False, ("worker 2: it has not reported for 5 s",))
    scene.run(2, report=READY)
    assert scene.supervision.health(None).ready


def test_a_worker_that_is_silent_is_not_where_it_said_it_was():
    scene = Scene(1)
    restoring = Health(live=True, ready=False, reasons=("a task is restored",))
    scene.run(report=msgspec.structs.replace(READY, health=restoring))
    assert scene.supervision.health(None).reasons == ("worker 1: a task is restored",)
    assert scene.supervision.silent_ms(1) is None
    scene.advance(UNREADY_MS)
    assert scene.supervision.health(None).reasons == ("worker 1: it has not reported for 5 s",)
    assert scene.supervision.silent_ms(1) == UNREADY_MS


def test_nobody_is_silent_while_the_supervisor_does_not_listen():
    scene = Scene(1)
    scene.run(report=READY)
    # Its terminal is blocked: other threads of the supervisor go on.
    scene.clock.advance_ms(round(2 * UNREADY_MS))
    assert scene.supervision.silent_ms(1) is None
    assert scene.supervision.health(None).ready
    scene.advance(0, watched=False)
    assert scene.supervision.silent_ms(1) is None


def test_a_worker_that_starts_is_not_silent():
    scene = Scene(1)
    scene.advance(2 * UNREADY_MS)
    assert scene.supervision.health(None).reasons == ("worker 1: starting",)
    assert scene.supervision.silent_ms(1) is None


def test_who_is_silent_is_reported_once_and_left_alone():
    scene = Scene(1)
    scene.run()
    assert "SIGSTOP" in scene.advance(SILENCE_MS)[0].text
    assert scene.advance(SILENCE_MS) == []
    assert scene.state(1) is WorkerState.RUNNING


def test_who_is_silent_for_so_long_that_others_have_its_tasks_is_killed_for_their_state():
    scene = Scene()
    scene.run(report=Report("running", tasks=1, patience_ms=1_000))
    assert scene.advance(1_000) == []
    scene.run(2, report=Report("running", tasks=1, patience_ms=1_000))
    told = scene.advance(1)
    assert told[0] == Kill(1)
    assert "it is killed" in told[1].text
    assert scene.advance(1) == []
    (told,) = scene.die(1, -9)
    assert "worker 1 was killed by its supervisor, because it had not reported for 1 s, after " in told.text
    scene.until_restart(1)
    scene.run(1)
    # Its next process is killed by somebody else.
    assert "worker 1 was killed by SIGKILL (kill -9, or " in scene.die(1, -9)[0].text


def test_who_was_not_listened_to_is_not_silent():
    """The supervisor was stopped, or its terminal took no output: the workers have worked all the time."""
    scene = Scene(1)
    scene.run(report=Report("running", tasks=1, patience_ms=1_000))
    assert scene.advance(100_000, watched=False) == []
    assert Kill(1) in scene.advance(2_000)


def test_who_is_silent_while_it_is_to_stop_is_killed_so_that_the_run_ends():
    scene = Scene(1)
    scene.run(report=Report("running", tasks=1, patience_ms=1_000))
    scene.supervision.stop()
    assert Kill(1) not in scene.advance(GOODBYE_MS)
    assert Kill(1) in scene.advance(AWAY_MS)
    scene.die(1, -9)
    assert scene.supervision.over
    assert (
        "was killed by its supervisor, because it had not reported for 30 s" in scene.supervision.failure.what
    )


@given(st.data())
def test_states_change_as_allowed_whatever_happens(data):
    """And the summary's records never go back, and a run that is stopped comes to its end."""
    scene = Scene(3, until_caught_up=data.draw(st.booleans()), seed=data.draw(st.integers()))
    records = 0
    for _ in range(data.draw(st.integers(0, 40))):
        alive = [w.number for w in scene.supervision.workers.values() if w.alive]
        if not alive:
            scene.advance(POLICY.backoff_ms_max)
            continue
        number = data.draw(st.sampled_from(alive))
        match data.draw(st.sampled_from(["report", "die", "fail", "time", "stop"])):
            case "report":
                more = scene.supervision.workers[number].report.records + data.draw(st.integers(0, 9))
                scene.run(number, report=Report("running", more, tasks=1, caught_up=data.draw(st.booleans())))
            case "die":
                scene.die(number, data.draw(st.sampled_from([-9, 0, 1])))
            case "fail":
                what = data.draw(st.sampled_from("ab"))
                scene.die(number, 1, Failure(what, hopeless=data.draw(st.booleans())))
            case "time":
                scene.advance(data.draw(st.integers(0, 100_000)))
            case "stop" if not scene.supervision.stopping:
                scene.supervision.stop()
        assert scene.supervision.summary().records >= records
        records = scene.supervision.summary().records
    if not scene.supervision.stopping:
        scene.supervision.stop()
    for worker in scene.supervision.workers.values():
        if worker.alive:
            scene.die(worker.number, 0)
    assert scene.supervision.over


def test_every_state_can_come_to_its_end():
    for state, successors in WORKER_SUCCESSORS.items():
        assert WorkerState.ENDED in successors or state is WorkerState.ENDED
    worker = Worker(1)
    worker.enter(WorkerState.ENDED, 0)
    with pytest.raises(IllegalTransitionError):
        worker.enter(WorkerState.RUNNING, 0)


@pytest.mark.parametrize(
    "exit_code,text",
    [(3, "exit code 3"), (-9, "SIGKILL"), (-11, "SIGSEGV"), (-15, "SIGTERM"), (-60, "signal 60")],
)
def test_an_end_is_named(exit_code, text):
    assert text in describe_exit(exit_code)
